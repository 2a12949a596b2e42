#include "text_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends a file to *buffer of *n bytes. */
static int read_file(const char* path, unsigned char** buffer, size_t* n, char* message, int cap) {
  FILE* f = fopen(path, "rb");
  size_t got;
  unsigned char block[65536];
  if (!f) {
    snprintf(message, (size_t)cap, "%s: %s", path, strerror(errno));
    return -1;
  }
  while ((got = fread(block, 1, sizeof block, f)) > 0) {
    unsigned char* more = realloc(*buffer, *n + got);
    if (!more) {
      fclose(f);
      snprintf(message, (size_t)cap, "%s: out of memory", path);
      return -1;
    }
    *buffer = more;
    memcpy(*buffer + *n, block, got);
    *n += got;
  }
  if (ferror(f)) {
    fclose(f);
    snprintf(message, (size_t)cap, "%s: %s", path, strerror(errno));
    return -1;
  }
  fclose(f);
  return 0;
}

int text_read(const char* const* paths, int n_paths, text* out, char* message, int cap) {
  unsigned char* bytes = NULL;
  size_t n = 0;
  int symbol_of[256];
  memset(out, 0, sizeof *out);
  for (int i = 0; i < n_paths; i++)
    if (read_file(paths[i], &bytes, &n, message, cap)) {
      free(bytes);
      return -1;
    }
  out->symbols = malloc((n ? n : 1) * sizeof *out->symbols);
  if (!out->symbols) {
    free(bytes);
    snprintf(message, (size_t)cap, "out of memory");
    return -1;
  }
  memset(symbol_of, -1, sizeof symbol_of);
  for (size_t i = 0; i < n; i++) symbol_of[bytes[i]] = 0;
  for (int b = 0; b < 256; b++)
    if (symbol_of[b] == 0) {
      symbol_of[b] = out->vocabulary;
      out->bytes[out->vocabulary++] = (unsigned char)b;
    }
  for (size_t i = 0; i < n; i++) out->symbols[i] = symbol_of[bytes[i]];
  out->n = (int64_t)n;
  free(bytes);
  return 0;
}

void text_free(text* t) { free(t->symbols); }
