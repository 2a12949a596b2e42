/* PyTorch's files: malformed files are refused with a reason, and nothing leaks. */
#include "torch_archive.h"

#define STORAGE                                       \
  "((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" \
  "0X\3\0\0\0cpuK\4tQ" /* a mark, four floats */
#define TENSOR "ctorch._utils\n_rebuild_tensor_v2\n" STORAGE
#define B(text) text, sizeof(text) - 1
static const struct {
  const char* body;
  int n;
  const char* why;
} kPickles[] = {
    {B("cos\nsystem\nX\4\0\0\0true\x85R"), "names os system"},
    {B("cbuiltins\neval\nX\1\0\0\0001\x85R"), "names builtins eval"},
    {B("ctorch\nload\n"), "names torch load"},
    {B("ctorch\nStorage\n"), "names torch Storage"},
    {B("ctorch\nXStorage\n"), "names torch XStorage"},
    {B("ctorch\nfloat3\n"), "names torch float3"},
    {B("c\xff\n\xff\n"), "invalid name"},
    {B("ctorch"), "ends too early"},
    {B("(ios\nsystem\n"), "opcode 105"},
    {B("]0"), "opcode 48"},
    {B("\xff"), "opcode 255"},
    {B("]q\0h\0a"), "contains itself"},
    {B("]q\0(h\0te"), "no mark"},
    {B("]q\0(h\0ta"), "contains itself"},
    {B("}q\0K\1h\0s"), "contains itself"},
    {B("]q\0]h\0a0"), "opcode 48"},
    {B("]q\0]h\0ah\0K\1a"), "contains itself"},
    {B("K\1K\2"), "STOP with 2"},
    {B(""), "STOP with 0"},
    {B("K\1("), "STOP with 1"},
    {B("h\7"), "memo has no object 7"},
    {B("j\7\0\0\0"), "memo has no object 7"},
    {B("Nq\3h\2"), "memo has no object 2"},
    {B("Nr\xff\xff\xff\xff"), "exceeds the size of the pickle"},
    {B("q\0"), "empty stack"},
    {B("a"), "empty stack"},
    {B("]a"), "empty stack"},
    {B("](K\1a"), "empty stack"},
    {B("(K\1\x86"), "empty stack"},
    {B("R"), "empty stack"},
    {B("NR"), "empty stack"},
    {B("Q"), "empty stack"},
    {B("b"), "empty stack"},
    {B("Nb"), "empty stack"},
    {B("t"), "no mark"},
    {B("u"), "no mark"},
    {B("}K\1K\2e"), "no mark"},
    {B("}K\1a"), "not a list or dict"},
    {B("]K\1K\2s"), "not a list or dict"},
    {B("NK\1a"), "not a list or dict"},
    {B("}(K\1u"), "not a list or dict"},
    {B(")(K\1e"), "not a list or dict"},
    {B("}]K\1s"), "mutable container"},
    {B("}]\x85K\1s"), "mutable container"},
    {B("K\1)R"), "not allowed"},
    {B("ccollections\nOrderedDict\nNR"), "expected a tuple"},
    {B("ccollections\nOrderedDict\nN\x85R"), "not allowed"},
    {B("ccollections\nCounter\n]\x85R"), "not allowed"},
    {B("ctorch\nSize\nN\x85R"), "expected a tuple"},
    {B("ctorch\nSize\nN\x85\x85R"), "expected an int"},
    {B("ctorch\ndevice\nK\1\x85R"), "not allowed"},
    {B("ctorch\nfloat32\n)R"), "not allowed"},
    {B("ctorch._utils\n_rebuild_parameter\nN\x88\x86R"), "not allowed"},
    {B("ctorch\nSize\n"), "unexpected class"},
    {B("ctorch\nFloatStorage\n"), "unexpected class"},
    {B("X\xff\xff\xff\x7f"
       "abc"),
     "ends too early"},
    {B("X\1\0\0\0\xff"), "not UTF-8"},
    {B("\x8a\x05"
       "abc"),
     "ends too early"},
    {B("\x8b\xff\xff\xff\xff"), "int of more"},
    {B("\x8b\0\1\0\0"), "int of more"},
    {B("G123"), "ends too early"},
    {B("J123"), "ends too early"},
    {B("\x80\x04"), "protocol 4"},
    {B("NQ"), "expected a tuple"},
    {B("N\x85Q"), "reference to a storage"},
    {B("(NNNNNNtQ"), "at most 5"},
    {B("ctorch\nSize\n(NNNNNNNNNtR"), "at most 8"},
    {B("N" STORAGE), "STOP"},
    {B("(" STORAGE "t"), "STOP with 1"},
    {B(TENSOR "NN\x86R"), "not allowed"},
    {B(TENSOR "J\xff\xff\xff\xff(K\1t(K\1t\x89NtR"), "sizes, strides or offset"},
    {B(TENSOR "K\0(J\xff\xff\xff\xfft(K\1t\x89NtR"), "sizes, strides or offset"},
    {B(TENSOR "K\0(K\1t(J\xff\xff\xff\xfft\x89NtR"), "sizes, strides or offset"},
    {B(TENSOR "K\0(K\2K\2t(K\1t\x89NtR"), "sizes, strides or offset"},
    {B(TENSOR "K\0(J\xff\xff\xff\x7fJ\xff\xff\xff\x7ft(K\0K\0t\x89NtR"),
     "sizes, strides or offset"},
    {B(TENSOR "K\0(J\xff\xff\xff\x7fJ\xff\xff\xff\x7fK\0t(K\0K\0K\0t\x89NtR"),
     "sizes, strides or offset"},
    {B(TENSOR "K\0(\x88t(K\1t\x89NtR"), "expected an int"},
    {B(TENSOR "K\0(K\1t(K\1t\x89N}K\1K\1stR"), "has metadata, such as conj"},
    {B(TENSOR "K\0(\x8a\x09\0\0\0\0\0\0\0\0\1t(K\1t\x89NtR"), "expected an int"},
    {B(TENSOR "K\0(K\5t(K\1t\x89NtR"), "larger than its storage"},
    {B(TENSOR "K\1(K\4t(K\1t\x89NtR"), "larger than its storage"},
    {B(TENSOR "K\0(K\2t(K\4t\x89NtR"), "larger than its storage"},
    {B(TENSOR "K\5(K\0t(K\1t\x89NtR"), "larger than its storage"},
    {B(TENSOR "K\0(K\3t(\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7ft\x89NtR"),
     "larger than its storage"},
    {B("((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
       "0X\3\0\0\0cpuK\5tQ"),
     "must have 5 elements"},
    {B("((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
       "0X\3\0\0\0cpuJ\xff\xff\xff\xfftQ"),
     "elements"},
    {B("((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
       "9X\3\0\0\0cpuK\4tQ"),
     "no item named a/data/9"},
    {B("((X\7\0\0\0storagectorch\nfloat32\nX\1\0\0\0"
       "0X\3\0\0\0cpuK\4tQ"),
     "reference to a storage"},
    {B(TENSOR "(X\7\0\0\0storagectorch\nIntStorage\nX\1\0\0\0"
              "0X\3\0\0\0cpuK\4tQ"),
     "two dtypes"},
    {B("ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nIntStorage\nX\1\0\0\0"
       "0X\3\0\0\0cpuK\4tQK\0))\x88NtR"),
     "requires a gradient"},
};

static void test_malformed_pickles(void** state) {
  size_t i;
  (void)state;
  for (i = 0; i < sizeof kPickles / sizeof *kPickles; i++) {
    pack_pickle(kPickles[i].body, kPickles[i].n, "little", kFour, 16);
    refused(kPickles[i].why);
  }
}

static void test_large_pickles(void** state) {
  static char body[1 << 15];
  int i;
  (void)state;
  body[0] = ')';
  memset(body + 1, '\x85', 200);
  pack_pickle(body, 200, "little", kFour, 16); /* 200 tuples */
  write_file(file, file_bytes);
  tt_state_dict_release(loaded(path));
  pack_pickle(body, 201, "little", kFour, 16);
  refused("nested too deep");
  { /* a text of 256 letters, then ten lists, each of ten times the one before: 2.6 · 10^12 letters
     */
    int n = 6 + 256 + 2, k;
    memcpy(body, "(X\0\1\0\0", 6);
    memset(body + 6, 'a', 256);
    memcpy(body + n - 2, "q\0", 2);
    for (i = 1; i <= 10; i++) {
      body[n++] = ']';
      body[n++] = 'q';
      body[n++] = (char)i;
      body[n++] = '(';
      for (k = 0; k < 10; k++) {
        body[n++] = 'h';
        body[n++] = (char)(i - 1);
      }
      body[n++] = 'e';
    }
    body[n++] = 't';
    pack_pickle(body, n, "little", kFour, 16);
    refused("bytes of text");
  }
}

typedef struct Lie { /* bytes of the packed file, relative to one of its parts */
  int* part;
  int at, n;
  uint64_t value;
  const char* why;
} Lie;

static void test_malformed_archives(void** state) {
  static const char kGood[] = TENSOR "K\0(K\4t(K\1t\x89NtR";
  static const Lie kLies[] = {
      {&rows[0], 8, 2, 1, "compressed or encrypted"},
      {&rows[3], 10, 2, 8, "compressed or encrypted"},
      {&rows[3], 20, 4, 15, "two sizes"},
      {&rows[3], 24, 4, 17, "two sizes"},
      {&rows[3], 20, 8, 0x1100000011, "overlap"},
      {&rows[3], 20, 8, 0x7fffffff7fffffff, "longer than the file"},
      {&rows[3], 20, 8, 0x7fffffffffffffff, "zip64"},
      {&rows[3], 20, 8, 0xffffffffffffffff, "zip64"},
      {&rows[3], 16, 4, 0, "checksum"},
      {&rows[0], 16, 4, 0, "checksum"},
      {&rows[3], 42, 4, 1, "overlap"},
      {&rows[3], 42, 4, 0, "overlap"},
      {&rows[3], 42, 4, 0xfffffffe, "longer than the file"},
      {&rows[3], 42, 4, 0xffffffff, "zip64"},
      {&rows[1], 28, 2, 0xffff, "longer than the directory"},
      {&rows[1], 28, 2, 8, "expected an entry"},
      {&rows[1], 0, 4, 0, "expected an entry"},
      {&rows[3], 46, 8, 0x312f617461642f61, "does not match the directory"},
      {&headers[3], 0, 4, 0, "does not match the directory"},
      {&headers[3], 26, 2, 7, "does not match the directory"},
      {&headers[3], 28, 2, 1, "overlap"},
      {&headers[2], 28, 2, 0xffff, "overlap"},
      {&headers[2], 8, 2, 8, "does not match the directory"},
      {&headers[3], 38, 1, 'x', "checksum"},
      {&end_at, 4, 2, 1, "several disks"},
      {&end_at, 8, 2, 3, "several disks"},
      {&end_at, 8, 4, 0x00030003, "entries"},
      {&end_at, 8, 4, 0x00050005, "entries"},
      {&end_at, 8, 4, 0, "entries"},
      {&end_at, 12, 4, 1, "not at its position"},
      {&end_at, 12, 4, 0xffffffff, "not at its position"},
      {&end_at, 16, 4, 0, "not at its position"},
      {&end_at, 20, 2, 1, "does not end"},
  };
  size_t i;
  int n;
  char* all;
  (void)state;
  for (i = 0; i < sizeof kLies / sizeof *kLies; i++) {
    pack_pickle(kGood, sizeof kGood - 1, "little", kFour, 16);
    memcpy(file + *kLies[i].part + kLies[i].at, &kLies[i].value, (size_t)kLies[i].n);
    refused(kLies[i].why);
  }
  pack_pickle(kGood, sizeof kGood - 1, "little", kFour, 16);
  file[file_bytes - 1] = 0;
  memcpy(file + file_bytes, "comment", 7);
  file[file_bytes - 2] = 7;
  file_bytes += 7;
  write_file(file, file_bytes);
  tt_state_dict_release(loaded(path)); /* a comment is allowed */
  pack_pickle(kGood, sizeof kGood - 1, "little", kFour, 16);
  n = file_bytes;
  all = malloc((size_t)n);
  memcpy(all, file, (size_t)n);
  for (file_bytes = 0; file_bytes < n; file_bytes++)
    refused("not a torch.save file"); /* every cut */
  for (i = 0; i < (size_t)n; i++) {   /* every byte is changed: the file is refused or read */
    tt_state_dict* s;
    const char was = all[i];
    int bit;
    for (bit = 0; bit < 8; bit += 3) {
      all[i] = (char)(was ^ 1 << bit);
      write_file(all, n);
      if (!tt_torch_load(c, path, &s)) tt_state_dict_release(s);
      else assert_int_equal(tt_ctx_error(c)->code, TT_FORMAT);
    }
    all[i] = was;
  }
  free(all);
}

static void test_entries_that_are_missing(void** state) {
  static const Entry kEntries[] = {
      {"a/data.pkl", "\x80\x02N.", 4}, {"a/version", "3\n", 2}, {"a/data.pkl", "\x80\x02N.", 4}};
  static const struct {
    const char *version, *why;
  } kVersions[] = {{"", "unknown version"},   {"0", "unknown version"},
                   {"11", "unknown version"}, {"999999999999", "unknown version"},
                   {"3x", "unknown version"}, {"12345678901234567", "too long"}};
  size_t i;
  (void)state;
  pack(kEntries, 1);
  refused("no entry version");
  pack(kEntries + 1, 1);
  refused("no entry data.pkl");
  pack(kEntries, 3);
  refused("the same name");
  pack(kEntries, 0);
  refused("entries");
  for (i = 0; i < sizeof kVersions / sizeof *kVersions; i++) {
    const Entry e[] = {kEntries[0],
                       {"a/version", kVersions[i].version, (int)strlen(kVersions[i].version)}};
    pack(e, 2);
    refused(kVersions[i].why);
  }
  write_file("PK\3\4", 4);
  file_bytes = 4;
  refused("does not end");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_malformed_pickles),
      SCOPED(test_large_pickles),
      SCOPED(test_malformed_archives),
      SCOPED(test_entries_that_are_missing),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
