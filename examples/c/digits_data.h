/* Reads the handwritten digits: rows of 64 pixels (0-16) and a label (0-9), separated by commas. */
#ifndef DIGITS_DATA_H
#define DIGITS_DATA_H

#include <stdint.h>

enum { DIGITS_PIXELS = 64, DIGITS_CLASSES = 10 };

typedef struct digits {
  int64_t n;
  float* pixels;   /* n x 64, scaled to 0 … 1 */
  int64_t* labels; /* n */
} digits;

/* 0, or -1 with a message that names file, line and column. */
int digits_read(const char* path, digits* out, char* message, int cap);
void digits_free(digits* d);

#endif
