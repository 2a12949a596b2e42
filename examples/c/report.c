#define _POSIX_C_SOURCE 200809L
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

progress progress_start(const char* what, int first, int total) {
  progress p = {what, first, total, isatty(STDOUT_FILENO), now()};
  return p;
}

void progress_show(progress* p, int done, double loss, int64_t rows) {
  enum { WIDTH = 30 };
  double spent = now() - p->start;
  double steps = done - p->first;
  double rate = spent > 0 ? (double)rows * steps / spent : 0;
  double left = steps > 0 ? spent / steps * (p->total - done) : 0;
  if (!p->terminal) {
    printf("%s %3d/%d  loss %.4f  %.0f samples/s\n", p->what, done, p->total, loss, rate);
    return;
  }
  int filled = WIDTH * done / p->total;
  printf("\r%s %3d/%d [", p->what, done, p->total);
  for (int i = 0; i < WIDTH; i++) fputs(i < filled ? "#" : "-", stdout);
  printf("] loss %.4f  %.0f samples/s  ETA %.1f s ", loss, rate, left);
  if (done == p->total) putchar('\n');
  fflush(stdout);
}

int curve_add(curve* c, double value) {
  if (c->n == c->cap) {
    int cap = c->cap ? 2 * c->cap : 64;
    double* more = realloc(c->values, (size_t)cap * sizeof *more);
    if (!more) {
      fprintf(stderr, "out of memory\n");
      return -1;
    }
    c->values = more;
    c->cap = cap;
  }
  c->values[c->n++] = value;
  return 0;
}
void curve_free(curve* c) {
  free(c->values);
  memset(c, 0, sizeof *c);
}

int curve_write_svg(const curve* c, const char* path, const char* title) {
  enum { W = 640, H = 360, LEFT = 60, TOP = 40, RIGHT = 20, BOTTOM = 40 };
  double top = 1e-9;
  FILE* f = fopen(path, "w");
  if (!f) {
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return -1;
  }
  for (int i = 0; i < c->n; i++)
    if (c->values[i] > top) top = c->values[i];
  fprintf(f,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
          "font-family=\"sans-serif\" "
          "font-size=\"12\">\n",
          W, H);
  fprintf(f,
          "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%d\" y=\"24\" "
          "font-size=\"15\">%s</text>\n",
          LEFT, title);
  for (int k = 0; k <= 4; k++) {
    double y = TOP + (H - TOP - BOTTOM) * k / 4.0;
    fprintf(f, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>", LEFT,
            W - RIGHT, y, y);
    fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n", LEFT - 6, y + 4,
            top * (4 - k) / 4);
  }
  fprintf(f,
          "<text x=\"%d\" y=\"%d\">1</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%d</text>\n",
          LEFT, H - 18, W - RIGHT, H - 18, c->n);
  fprintf(f, "<polyline fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"2\" points=\"");
  for (int i = 0; i < c->n; i++)
    fprintf(f, "%.1f,%.1f ", LEFT + (double)(W - LEFT - RIGHT) * i / (c->n > 1 ? c->n - 1 : 1),
            TOP + (H - TOP - BOTTOM) * (1 - c->values[i] / top));
  fprintf(f, "\"/>\n</svg>\n");
  return fclose(f);
}

double accuracy(const int64_t* truth, const int64_t* guess, int64_t n) {
  int64_t right = 0;
  for (int64_t i = 0; i < n; i++) right += truth[i] == guess[i];
  return n ? (double)right / (double)n : 0;
}

void print_confusion(const int64_t* truth, const int64_t* guess, int64_t n, int classes) {
  printf("\nconfusion matrix (rows: digit, columns: predicted)\n    ");
  for (int k = 0; k < classes; k++) printf("%4d", k);
  for (int t = 0; t < classes; t++) {
    printf("\n%4d", t);
    for (int g = 0; g < classes; g++) {
      int count = 0;
      for (int64_t i = 0; i < n; i++) count += truth[i] == t && guess[i] == g;
      if (count) printf("%4d", count);
      else printf("   .");
    }
  }
  printf("\n\n");
}
