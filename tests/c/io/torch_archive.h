/* PyTorch's files for tests: a path per test, the tensors read from it, archives made by hand.
 */
#ifndef TT_TEST_TORCH_ARCHIVE_H
#define TT_TEST_TORCH_ARCHIVE_H

#include "harness.h"

#include <dirent.h>
#include <unistd.h>

#define MAYBE_UNUSED __attribute__((unused))

static char folder[64], path[128];

MAYBE_UNUSED static int set_up(void** state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/tt_torch_XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/model.pt", folder);
  return 0;
}
MAYBE_UNUSED static int files_in_folder(void) {
  DIR* d = opendir(folder);
  struct dirent* e;
  int n = 0;
  while ((e = readdir(d)) != NULL) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}
MAYBE_UNUSED static int tear_down(void** state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

MAYBE_UNUSED static tt_state_dict* loaded(const char* from) {
  tt_state_dict* s;
  OK(tt_torch_load(c, from, &s));
  return s;
}
MAYBE_UNUSED static tt_tensor* got(const tt_state_dict* s, const char* name) { /* the scope's */
  tt_tensor* t;
  int64_t i;
  OK(tt_state_dict_find(c, s, name, &i));
  OK(tt_state_dict_get(c, s, i, &t));
  return t;
}
MAYBE_UNUSED static tt_state_dict* dict_of(const char* const* names, tt_tensor* const* tensors,
                                           int n) {
  tt_state_dict* s;
  int i;
  OK(tt_state_dict_new(c, &s));
  for (i = 0; i < n; i++) OK(tt_state_dict_set(c, s, names[i], tensors[i]));
  return s;
}

/* ---- archives by hand ---- */

typedef struct Entry {
  const char *name, *data;
  int bytes;
} Entry;
MAYBE_UNUSED static char file[1 << 16];
MAYBE_UNUSED static int file_bytes;
MAYBE_UNUSED static int directory;
MAYBE_UNUSED static int end_at;
MAYBE_UNUSED static int headers[8];
MAYBE_UNUSED static int rows[8];

MAYBE_UNUSED static void put(uint64_t v, int n) {
  memcpy(file + file_bytes, &v, (size_t)n);
  file_bytes += n;
}
MAYBE_UNUSED static void put_text(const char* s, int n) {
  memcpy(file + file_bytes, s, (size_t)n);
  file_bytes += n;
}
MAYBE_UNUSED static uint32_t crc_of(const char* p, int n) {
  uint32_t crc = ~0u;
  int i, k;
  for (i = 0; i < n; i++)
    for (crc ^= (uint8_t)p[i], k = 0; k < 8; k++) crc = crc & 1 ? 0xedb88320u ^ crc >> 1 : crc >> 1;
  return ~crc;
}
MAYBE_UNUSED static void put_facts(const Entry* e) { /* of a header and of a row of the directory */
  put(20, 2);
  put(0, 8);
  put(crc_of(e->data, e->bytes), 4);
  put((uint64_t)e->bytes, 4);
  put((uint64_t)e->bytes, 4);
  put(strlen(e->name), 2);
  put(0, 2);
}
MAYBE_UNUSED static void pack(const Entry* e, int n) {
  int i;
  file_bytes = 0;
  for (i = 0; i < n; i++) {
    headers[i] = file_bytes;
    put(0x04034b50, 4);
    put_facts(&e[i]);
    put_text(e[i].name, (int)strlen(e[i].name));
    put_text(e[i].data, e[i].bytes);
  }
  directory = file_bytes;
  for (i = 0; i < n; i++) {
    rows[i] = file_bytes;
    put(0x02014b50, 4);
    put(20, 2);
    put_facts(&e[i]);
    put(0, 8);
    put(0, 2);
    put((uint64_t)headers[i], 4);
    put_text(e[i].name, (int)strlen(e[i].name));
  }
  end_at = file_bytes;
  put(0x06054b50, 4);
  put(0, 4);
  put((uint64_t)n, 2);
  put((uint64_t)n, 2);
  put((uint64_t)(end_at - directory), 4);
  put((uint64_t)directory, 4);
  put(0, 2);
}
MAYBE_UNUSED static void write_file(const char* data, int n) {
  FILE* f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, (size_t)n, f), n);
  fclose(f);
}
/* A pickle of `body` between its first and last opcode, over one storage. */
MAYBE_UNUSED static void pack_pickle(const char* body, int n, const char* order,
                                     const void* storage, int bytes) {
  static char pickle[1 << 15];
  const Entry e[] = {{"a/data.pkl", pickle, n + 3},
                     {"a/version", "3\n", 2},
                     {"a/byteorder", order, (int)strlen(order)},
                     {"a/data/0", (const char*)storage, bytes}};
  memcpy(pickle, "\x80\x02", 2);
  memcpy(pickle + 2, body, (size_t)n);
  pickle[n + 2] = '.';
  pack(e, 4);
}
MAYBE_UNUSED static const float kFour[4] = {1, 2, 3, 4};
MAYBE_UNUSED static void refused(const char* why) {
  tt_state_dict* s = (tt_state_dict*)folder;
  write_file(file, file_bytes);
  FAILS(tt_torch_load(c, path, &s), TT_FORMAT, why);
  assert_null(s);
}

#endif
