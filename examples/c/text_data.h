/* A text as numbers: each byte that occurs in it is a symbol. */
#ifndef TEXT_DATA_H
#define TEXT_DATA_H

#include <stdint.h>

typedef struct text {
  int64_t* symbols; /* n numbers in [0, vocabulary) */
  int64_t n;
  int vocabulary;
  unsigned char bytes[256]; /* of the symbols */
} text;

/* Reads the files one behind the other. 0, or -1 with a reason in message[cap]. */
int text_read(const char* const* paths, int n_paths, text* out, char* message, int cap);
void text_free(text* t);

#endif
