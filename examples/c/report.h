/* What the example shows: a progress bar, a confusion matrix, a curve as SVG. */
#ifndef REPORT_H
#define REPORT_H

#include <stdint.h>

typedef struct progress {
  const char* what; /* "epoch", "step" */
  int first, total, terminal;
  double start;
} progress;
progress progress_start(const char* what, int first,
                        int total); /* first: those that an earlier run has done */
/* A bar with loss, rate and time left on a terminal, else a plain line. rows: samples of one step.
 */
void progress_show(progress* p, int done, double loss, int64_t rows);

typedef struct curve {
  double* values;
  int n, cap;
} curve;
int curve_add(curve* c, double value);
void curve_free(curve* c);
int curve_write_svg(const curve* c, const char* path, const char* title);

double accuracy(const int64_t* truth, const int64_t* guess, int64_t n);
/* Rows: the true class; columns: the predicted one. */
void print_confusion(const int64_t* truth, const int64_t* guess, int64_t n, int classes);

#endif
