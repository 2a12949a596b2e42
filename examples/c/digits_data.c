#include "digits_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The whole file and a closing 0, or NULL with a message. */
static char* read_file(const char* path, size_t* size, char* message, int cap) {
  FILE* f = fopen(path, "rb");
  char* text = NULL;
  size_t room = 0, got = 1;
  const char* why = NULL;
  *size = 0;
  if (!f) {
    snprintf(message, (size_t)cap, "%s: %s", path, strerror(errno));
    return NULL;
  }
  for (; got && !why; *size += got) {
    if (*size == room) {
      char* more = realloc(text, (room = room ? 2 * room : 1 << 18) + 1);
      if (!more) why = "out of memory";
      else text = more;
    }
    got = why ? 0 : fread(text + *size, 1, room - *size, f);
    if (ferror(f)) why = strerror(errno);
  }
  fclose(f);
  if (why) {
    snprintf(message, (size_t)cap, "%s: cannot be read: %s", path, why);
    free(text);
    return NULL;
  }
  text[*size] = 0;
  return text;
}

/* One line of 65 integers; returns the start of the next one or NULL. */
static const char* read_row(const char* path, long line, const char* p, const char* end_of_file,
                            float* pixels, int64_t* label, char* message, int cap) {
  const char* start = p;
  for (int k = 0; k <= DIGITS_PIXELS; k++) {
    char* end;
    int max = k < DIGITS_PIXELS ? 16 : DIGITS_CLASSES - 1;
    long v = strtol(p, &end, 10);
    int column = (int)(p - start) + 1;
    if (*p < '0' || *p > '9' || end == p) {
      const char* what = "not a number";
      if (*p == '\n' || *p == '\r') what = "the line ends";
      if (*p == 0) what = p == end_of_file ? "the file ends" : "a zero byte";
      snprintf(message, (size_t)cap, "%s:%ld:%d: %s where value %d of 65 should be", path, line,
               column, what, k + 1);
      return NULL;
    }
    if (v > max) {
      snprintf(message, (size_t)cap, "%s:%ld:%d: %ld is out of range: value %d must be 0 to %d",
               path, line, column, v, k + 1, max);
      return NULL;
    }
    if (k < DIGITS_PIXELS) pixels[k] = (float)v / 16.0f;
    else *label = v;
    p = end;
    if (k < DIGITS_PIXELS) {
      if (*p == ',') p++;
    } else {
      if (*p == '\r') p++;
      if (*p ? *p != '\n' : p != end_of_file) {
        snprintf(message, (size_t)cap, "%s:%ld:%d: %s", path, line, (int)(p - start) + 1,
                 *p ? "more than 65 values, or not a number" : "a zero byte");
        return NULL;
      }
      if (*p) p++;
    }
  }
  return p;
}

int digits_read(const char* path, digits* out, char* message, int cap) {
  size_t size = 0;
  char* text = read_file(path, &size, message, cap);
  int64_t rows = 0;
  memset(out, 0, sizeof *out);
  if (!text) return -1;
  for (size_t i = 0; i < size; i++) rows += text[i] == '\n';
  rows += size && text[size - 1] != '\n';
  out->pixels = malloc((size_t)(rows + 1) * DIGITS_PIXELS * sizeof(float));
  out->labels = malloc((size_t)(rows + 1) * sizeof(int64_t));
  if (!out->pixels || !out->labels || !rows) {
    snprintf(message, (size_t)cap, rows ? "%s: out of memory" : "%s:1:1: the file is empty", path);
    free(text);
    digits_free(out);
    return -1;
  }
  const char* p = text;
  for (; out->n < rows && p; out->n++)
    p = read_row(path, (long)out->n + 1, p, text + size, out->pixels + out->n * DIGITS_PIXELS,
                 out->labels + out->n, message, cap);
  free(text);
  if (!p) digits_free(out);
  return p ? 0 : -1;
}

void digits_free(digits* d) {
  free(d->pixels);
  free(d->labels);
  memset(d, 0, sizeof *d);
}
