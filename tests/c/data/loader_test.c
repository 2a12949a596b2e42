/* Datasets, samplers and loaders. */
#include "support.h"

#include <pthread.h>
#include <time.h>

enum { kRows = 103 };

/* Rows i: {2 i, 2 i + 1} in float32, and i in int64. */
static tt_dataset* rows_dataset(tt_ctx* c) {
  float values[2 * kRows];
  int64_t labels[kRows], i;
  const int64_t size[] = {kRows, 2};
  tt_tensor* parts[2] = {NULL, NULL};
  tt_dataset* d = NULL;
  for (i = 0; i < kRows; i++) {
    values[2 * i] = (float)(2 * i);
    values[2 * i + 1] = (float)(2 * i + 1);
    labels[i] = i;
  }
  assert_int_equal(tt_tensor_from_data(c, values, TT_F32, size, 2, &parts[0]), TT_OK);
  assert_int_equal(tt_tensor_from_data(c, labels, TT_I64, size, 1, &parts[1]), TT_OK);
  assert_int_equal(tt_dataset_tensors(c, (const tt_tensor* const*)parts, 2, &d), TT_OK);
  tt_tensor_release(parts[0]);
  tt_tensor_release(parts[1]);
  return d;
}
static tt_loader* loader_of(tt_ctx* c, tt_dataset* d, tt_sampler* s, int64_t batch, int64_t workers,
                            int32_t drop_last) {
  tt_loader_opts o;
  tt_loader* l = NULL;
  memset(&o, 0, sizeof o);
  o.set = 15;
  o.batch_size = batch;
  o.workers = workers;
  o.prefetch = 2;
  o.drop_last = drop_last;
  assert_int_equal(tt_loader_new(c, d, s, &o, &l), TT_OK);
  return l;
}
/* Appends the labels of the next batch and returns their number, 0 at the end of the epoch. */
static int64_t take(tt_ctx* c, tt_loader* l, int64_t* labels) {
  tt_tensor* batch[2] = {NULL, NULL};
  int64_t n = 0, size, i;
  assert_int_equal(tt_loader_next(c, l, batch, 2, &n), TT_OK);
  if (!n) return 0;
  assert_int_equal(n, 2);
  size = tt_tensor_size(batch[1], 0);
  assert_int_equal(tt_tensor_size(batch[0], 0), size);
  for (i = 0; i < size; i++) {
    const float* row = (const float*)tt_tensor_data(batch[0]) + 2 * i;
    labels[i] = ((const int64_t*)tt_tensor_data(batch[1]))[i];
    assert_true(row[0] == (float)(2 * labels[i]) && row[1] == row[0] + 1);
  }
  tt_tensor_release(batch[0]);
  tt_tensor_release(batch[1]);
  return size;
}
static int64_t take_epoch(tt_ctx* c, tt_loader* l, int64_t* labels) {
  int64_t total = 0, n;
  while ((n = take(c, l, labels + total)) > 0) total += n;
  return total;
}

static void test_order(void** state) {
  CTX;
  int64_t first[kRows], labels[2 * kRows], n, i, workers;
  uint8_t seen[kRows];
  tt_dataset* d = rows_dataset(c);
  assert_int_equal(tt_dataset_size(d), kRows);
  for (workers = 0; workers < 4; workers++) {
    tt_sampler* s = NULL;
    tt_loader* l = loader_of(c, d, NULL, 10, workers, 0);
    assert_int_equal(tt_loader_length(l), 11);
    for (n = 0; n < 2; n++) {
      assert_int_equal(take_epoch(c, l, labels), kRows);
      for (i = 0; i < kRows; i++) assert_int_equal(labels[i], i);
    }
    tt_loader_release(l);
    l = loader_of(c, d, NULL, 10, workers, 1);
    assert_int_equal(tt_loader_length(l), 10);
    assert_int_equal(take_epoch(c, l, labels), 100);
    assert_int_equal(take_epoch(c, l, labels), 100);
    tt_loader_release(l);
    OK(tt_sampler_random(c, kRows, 0, -1, 7, &s));
    l = loader_of(c, d, s, 10, workers, 0);
    assert_int_equal(take_epoch(c, l, labels), kRows);
    assert_int_equal(take_epoch(c, l, labels + kRows), kRows);
    assert_memory_not_equal(labels, labels + kRows, sizeof first);
    memset(seen, 0, sizeof seen);
    for (i = 0; i < kRows; i++) seen[labels[i]]++;
    for (i = 0; i < kRows; i++) assert_int_equal(seen[i], 1);
    if (!workers) memcpy(first, labels, sizeof first);
    assert_memory_equal(first, labels, sizeof first); /* for every number of workers */
    tt_loader_release(l);
    tt_sampler_release(s);
  }
  tt_dataset_release(d);
}

/* A loader continues where another one was, in the middle of an epoch. */
static void test_state(void** state) {
  CTX;
  int64_t whole[3 * kRows], rest[3 * kRows], at[3], n, workers;
  tt_dataset* d = rows_dataset(c);
  for (workers = 0; workers < 3; workers++) {
    tt_sampler *s = NULL, *t = NULL;
    tt_loader *l, *m;
    OK(tt_sampler_random(c, kRows, 0, -1, 3, &s));
    OK(tt_sampler_random(c, kRows, 0, -1, 99, &t));
    l = loader_of(c, d, s, 8, workers, 0);
    m = loader_of(c, d, t, 8, 2 - workers, 0);
    take_epoch(c, l, whole);
    n = take(c, l, whole);
    n += take(c, l, whole + n);
    OK(tt_loader_state(c, l, at));
    assert_int_equal(at[0], 3);
    assert_int_equal(at[1], 1);
    assert_int_equal(at[2], 16);
    n = take_epoch(c, l, whole);
    assert_int_equal(n, kRows - 16);
    take_epoch(c, l, whole + n);
    take(c, m, rest); /* its workers are ahead */
    OK(tt_loader_set_state(c, m, at));
    assert_int_equal(take_epoch(c, m, rest), n);
    take_epoch(c, m, rest + n);
    assert_memory_equal(whole, rest, (size_t)(n + kRows) * sizeof *whole);
    OK(tt_loader_state(c, m, at));
    assert_int_equal(at[1], 3);
    assert_int_equal(at[2], 0);
    at[2] = kRows + 1;
    FAILS(TT_INVALID_ARG, tt_loader_set_state(c, m, at));
    at[1] = -1;
    FAILS(TT_INVALID_ARG, tt_loader_set_state(c, m, at));
    assert_int_equal(take_epoch(c, m, rest), kRows);
    tt_loader_release(l);
    tt_loader_release(m);
    tt_sampler_release(s);
    tt_sampler_release(t);
  }
  tt_dataset_release(d);
}

static void test_samplers(void** state) {
  CTX;
  const double weights[] = {0, 1, 0, 3}, bad[] = {1, -1};
  const int64_t chosen[] = {5, 3, 9};
  int64_t got[64], again[64], n = 0, i, at[3];
  tt_sampler* s = NULL;
  OK(tt_sampler_random(c, 4, 1, 50, 1, &s));
  OK(tt_sampler_next(c, s, got, 64, &n));
  assert_int_equal(n, 50);
  for (i = 0; i < n; i++) assert_true(got[i] >= 0 && got[i] < 4);
  OK(tt_sampler_next(c, s, got, 64, &n));
  assert_int_equal(n, 0);
  OK(tt_sampler_state(c, s, at));
  assert_true(at[0] == 1 && at[1] == 1 && at[2] == 0);
  tt_sampler_release(s);
  OK(tt_sampler_random(c, 4, 0, 10, 1, &s)); /* several permutations */
  OK(tt_sampler_next(c, s, got, 7, &n));
  assert_int_equal(n, 7);
  assert_int_equal(got[0] + got[1] + got[2] + got[3], 6);
  OK(tt_sampler_state(c, s, at));
  OK(tt_sampler_next(c, s, got, 64, &n));
  assert_int_equal(n, 3);
  OK(tt_sampler_set_state(c, s, at));
  OK(tt_sampler_next(c, s, again, 64, &n));
  assert_memory_equal(got, again, 3 * sizeof *got);
  tt_sampler_release(s);
  OK(tt_sampler_weighted(c, weights, 4, 40, 1, 5, &s));
  OK(tt_sampler_next(c, s, got, 64, &n));
  assert_int_equal(n, 40);
  for (i = 0; i < n; i++) assert_true(got[i] == 1 || got[i] == 3);
  tt_sampler_release(s);
  OK(tt_sampler_weighted(c, weights, 4, 2, 0, 5, &s));
  OK(tt_sampler_next(c, s, got, 64, &n));
  assert_int_equal(got[0] + got[1], 4);
  tt_sampler_release(s);
  OK(tt_sampler_subset(c, chosen, 3, 0, 0, &s));
  OK(tt_sampler_next(c, s, got, 64, &n));
  assert_memory_equal(got, chosen, sizeof chosen);
  assert_int_equal(tt_sampler_length(s), 3);
  tt_sampler_release(s);
  OK(tt_sampler_subset(c, chosen, 3, 1, 0, &s));
  OK(tt_sampler_next(c, s, got, 64, &n));
  assert_int_equal(got[0] + got[1] + got[2], 17);
  tt_sampler_release(s);
  OK(tt_sampler_sequential(c, 0, &s));
  OK(tt_sampler_next(c, s, got, 64, &n));
  assert_int_equal(n, 0);
  tt_sampler_release(s);
  FAILS(TT_INVALID_ARG, tt_sampler_sequential(c, -1, &s));
  FAILS(TT_INVALID_ARG, tt_sampler_random(c, 0, 1, 5, 1, &s));
  FAILS(TT_INVALID_ARG, tt_sampler_weighted(c, weights, 4, 3, 0, 5, &s));
  FAILS(TT_INVALID_ARG, tt_sampler_weighted(c, bad, 2, 1, 0, 5, &s));
}

enum { kProcesses = 3, kShared = 10, kMostEach = 4 };

/* What each process gets in an epoch, and how often each index is among it. */
static void share_epoch(tt_ctx* c, int64_t epoch, int shuffle, int drop_last,
                        int64_t got[kProcesses][kMostEach], int times[kShared]) {
  const int64_t at[3] = {5, epoch, 0}, each = drop_last ? kShared / kProcesses : kMostEach;
  int64_t n = 0, none[1];
  for (int rank = 0; rank < kProcesses; rank++) {
    tt_sampler* s = NULL;
    OK(tt_sampler_distributed(c, kShared, rank, kProcesses, shuffle, drop_last, 5, &s));
    assert_int_equal(tt_sampler_length(s), each);
    OK(tt_sampler_set_state(c, s, at));
    OK(tt_sampler_next(c, s, got[rank], kMostEach, &n));
    assert_int_equal(n, each);
    for (int64_t i = 0; i < n; i++) times[got[rank][i]]++;
    OK(tt_sampler_next(c, s, none, 1, &n)); /* the next epoch begins */
    assert_int_equal(n, 0);
    tt_sampler_release(s);
  }
}

/* Processes share the indices of an epoch; what is over is repeated or dropped. */
static void test_samplers_of_processes(void** state) {
  CTX;
  for (int how = 0; how < 4; how++) {
    const int shuffle = how & 1, drop_last = how >> 1;
    int64_t first[kProcesses][kMostEach], second[kProcesses][kMostEach];
    int times[kShared] = {0}, again[kShared] = {0}, used = 0;
    share_epoch(c, 0, shuffle, drop_last, first, times);
    share_epoch(c, 1, shuffle, drop_last, second, again);
    for (int i = 0; i < kShared; i++) {
      assert_true(times[i] <= (drop_last ? 1 : 2));
      used += times[i] > 0;
    }
    assert_int_equal(used, drop_last ? kShared / kProcesses * kProcesses : kShared);
    if (shuffle) assert_memory_not_equal(first[0], second[0], 3 * sizeof first[0][0]);
    else assert_true(first[1][0] == 1 && first[1][2] == 7 && second[2][1] == 5);
    if (!shuffle && !drop_last) assert_true(first[0][3] == 9 && first[1][3] == 0);
  }
  tt_sampler* s = NULL;
  int64_t got[4], n = 0;
  OK(tt_sampler_distributed(c, 1, 2, 3, 1, 0, 0, &s)); /* fewer samples than processes */
  OK(tt_sampler_next(c, s, got, 4, &n));
  assert_true(n == 1 && got[0] == 0);
  tt_sampler_release(s);
  OK(tt_sampler_distributed(c, 0, 0, 2, 1, 0, 0, &s));
  OK(tt_sampler_next(c, s, got, 4, &n));
  assert_int_equal(n, 0);
  tt_sampler_release(s);
  FAILS(TT_INVALID_ARG, tt_sampler_distributed(c, -1, 0, 2, 0, 0, 0, &s));
  FAILS(TT_INVALID_ARG, tt_sampler_distributed(c, 4, 2, 2, 0, 0, 0, &s));
  FAILS(TT_INVALID_ARG, tt_sampler_distributed(c, 4, -1, 2, 0, 0, 0, &s));
  FAILS(TT_INVALID_ARG, tt_sampler_distributed(c, 4, 0, 0, 0, 0, 0, &s));
  assert_null(s);
}

/* Concatenations and subsets have the samples of their datasets. */
static void test_datasets(void** state) {
  CTX;
  tt_dataset *d = rows_dataset(c), *part = NULL, *both = NULL, *deep = NULL;
  const tt_dataset* list[2];
  const int64_t indices[] = {100, 2, 2, 50}, wrong[] = {kRows}, last[] = {104, 0, 103};
  int64_t labels[2 * kRows], n = 0, i;
  tt_tensor* sample[2];
  tt_loader* l;
  OK(tt_dataset_subset(c, d, indices, 4, &part));
  list[0] = part;
  list[1] = d;
  OK(tt_dataset_concat(c, list, 2, &both));
  assert_int_equal(tt_dataset_size(both), 4 + kRows);
  l = loader_of(c, both, NULL, 3, 2, 0);
  assert_int_equal(take_epoch(c, l, labels), 4 + kRows);
  for (i = 0; i < 4; i++) assert_int_equal(labels[i], indices[i]);
  for (i = 0; i < kRows; i++) assert_int_equal(labels[4 + i], i);
  tt_loader_release(l);
  OK(tt_dataset_subset(c, both, last, 3, &deep));
  OK(tt_dataset_get(c, deep, 1, sample, 2, &n));
  assert_int_equal(*(const int64_t*)tt_tensor_data(sample[1]), 100);
  tt_tensor_release(sample[0]);
  tt_tensor_release(sample[1]);
  FAILS(TT_INDEX, tt_dataset_get(c, deep, 3, sample, 2, &n));
  FAILS(TT_INDEX, tt_dataset_get(c, deep, -1, sample, 2, &n));
  FAILS(TT_BUFFER_TOO_SMALL, tt_dataset_get(c, deep, 0, sample, 1, &n));
  FAILS(TT_INDEX, tt_dataset_subset(c, d, wrong, 1, &part));
  tt_dataset_release(deep);
  tt_dataset_release(both);
  tt_dataset_release((tt_dataset*)list[0]);
  OK(tt_dataset_concat(c, NULL, 0, &both));
  assert_int_equal(tt_dataset_size(both), 0);
  l = loader_of(c, both, NULL, 3, 1, 0);
  assert_int_equal(take_epoch(c, l, labels), 0);
  tt_loader_release(l);
  tt_dataset_release(both);
  tt_dataset_release(d);
}

/* ---- callbacks ---- */

typedef struct Made {
  int64_t size, fail_at, wrong_at, calls, drops;
} Made;
static tt_status make_sample(void* user, tt_ctx* c, int64_t index, tt_tensor** outs, int64_t cap,
                             int64_t* n_outs) {
  Made* m = user;
  const int64_t size = index == m->wrong_at ? 3 : 2;
  const float value = (float)index;
  const float values[3] = {value, value, value};
  (void)cap;
  __atomic_fetch_add(&m->calls, 1, __ATOMIC_RELAXED);
  if (index == m->fail_at) return tt_ctx_set_error(c, TT_IO, "sample 9 is missing");
  if (index >= m->size) return TT_OK; /* of a stream */
  *n_outs = 1;
  return tt_tensor_from_data(c, values, TT_F32, &size, 1, &outs[0]);
}
static void drop_made(void* user) { ((Made*)user)->drops++; }

static void test_callbacks(void** state) {
  CTX;
  int64_t workers;
  for (workers = 0; workers < 4; workers++) {
    Made m = {25, -1, -1, 0, 0};
    tt_dataset *d = NULL, *stream = NULL;
    tt_tensor* batch = NULL;
    tt_loader* l;
    int64_t n, i, k, rows = 0, failed = 0;
    OK(tt_dataset_map(c, 25, make_sample, &m, drop_made, &d));
    l = loader_of(c, d, NULL, 4, workers, 0);
    for (i = 0;; i += 4) {
      OK(tt_loader_next(c, l, &batch, 1, &n));
      if (!n) break;
      for (k = 0; k < tt_tensor_size(batch, 0); k++, rows++)
        assert_true(((const float*)tt_tensor_data(batch))[2 * k + 1] == (float)(i + k));
      tt_tensor_release(batch);
    }
    assert_int_equal(rows, 25);
    m.fail_at = 9;
    m.wrong_at = 14;
    for (rows = 0;;) {
      const tt_status s = tt_loader_next(c, l, &batch, 1, &n);
      if (s) {
        assert_int_equal(s, failed++ ? TT_SHAPE : TT_CALLBACK);
        if (s == TT_CALLBACK) { /* the cause comes from the thread of a worker, too */
          assert_non_null(tt_ctx_error(c)->cause);
          assert_int_equal(tt_ctx_error(c)->cause->code, TT_IO);
          assert_string_equal(tt_ctx_error(c)->cause->message, "sample 9 is missing");
        }
        continue;
      }
      if (!n) break;
      rows += tt_tensor_size(batch, 0);
      tt_tensor_release(batch);
    }
    assert_int_equal(failed, 2);
    assert_int_equal(rows, 25 - 8);
    tt_loader_release(l);
    tt_dataset_release(d);
    assert_int_equal(m.drops, 1);
    m.fail_at = m.wrong_at = -1;
    OK(tt_dataset_stream(c, make_sample, &m, drop_made, &stream));
    assert_int_equal(tt_dataset_size(stream), -1);
    l = loader_of(c, stream, NULL, 4, workers, workers & 1);
    tt_dataset_release(stream);
    for (k = 0; k < 2; k++) {
      for (rows = 0;; rows += n ? tt_tensor_size(batch, 0) : 0, tt_tensor_release(batch)) {
        batch = NULL;
        OK(tt_loader_next(c, l, &batch, 1, &n));
        if (!n) break;
        assert_true(*(const float*)tt_tensor_data(batch) == (float)rows);
      }
      assert_int_equal(rows, workers & 1 ? 24 : 25);
    }
    tt_loader_release(l);
    assert_int_equal(m.drops, 2);
  }
}

/* A worker releases the loader; a sample asks for the next batch. */
typedef struct Reentry {
  tt_loader* loader;
  int releases, asks;
} Reentry;
static tt_status reenter(void* user, tt_ctx* c, int64_t index, tt_tensor** outs, int64_t cap,
                         int64_t* n_outs) {
  Reentry* r = user;
  const int64_t size = 1;
  int64_t n = 0;
  (void)cap;
  if (r->releases && index == 1) tt_loader_release(r->loader);
  if (r->asks && tt_loader_next(c, r->loader, outs, 1, &n) != TT_INVALID_ARG) return TT_INTERNAL;
  *n_outs = 1;
  return tt_ones(c, &size, 1, NULL, &outs[0]);
}
static int64_t live_bytes(tt_ctx* c) {
  tt_memory_stats stats;
  assert_int_equal(tt_trim(c), TT_OK); /* with TT_CHECKED, what was released stays until then */
  assert_int_equal(tt_memory(c, NULL, &stats), TT_OK);
  return stats.in_use;
}
static void test_reentrancy(void** state) {
  CTX;
  const struct timespec moment = {0, 10000000};
  int64_t workers, n, before, i;
  tt_tensor* batch = NULL;
  before = live_bytes(c);
  for (workers = 0; workers < 3; workers++) {
    Reentry r = {NULL, 0, 1};
    tt_dataset* d = NULL;
    OK(tt_dataset_map(c, 20, reenter, &r, NULL, &d));
    r.loader = loader_of(c, d, NULL, 2, workers, 0);
    OK(tt_loader_next(c, r.loader, &batch, 1, &n));
    tt_tensor_release(batch);
    tt_loader_release(r.loader); /* its workers have ended then */
    r.asks = 0;
    r.releases = workers > 0;
    r.loader = loader_of(c, d, NULL, 1, workers, 0);
    if (workers) {
      tt_loader_retain(r.loader); /* the callback has one reference, this thread the other */
      OK(tt_loader_next(c, r.loader, &batch, 1, &n));
      tt_tensor_release(batch);
    }
    tt_loader_release(r.loader);
    tt_dataset_release(d);
    /* a worker that deletes the loader does so after this thread's release */
    for (i = 0; i < 6000 && live_bytes(c) != before; i++) nanosleep(&moment, NULL);
    assert_int_equal(live_bytes(c), before);
  }
  nanosleep(&moment, NULL);
}

/* Threads of the application make batches ahead. */
typedef struct Host {
  pthread_t thread;
  tt_ctx* c;
  tt_loader* l;
  int32_t stop;
  int64_t made;
} Host;
static void* host_thread(void* arg) {
  Host* h = arg;
  int32_t did = 0;
  while (!__atomic_load_n(&h->stop, __ATOMIC_RELAXED)) {
    if (tt_loader_work(h->c, h->l, &did)) return arg;
    h->made += did;
  }
  return NULL;
}
static void test_threads_of_the_application(void** state) {
  CTX;
  tt_dataset* d = rows_dataset(c);
  tt_loader* l = loader_of(c, d, NULL, 3, 0, 0);
  Host hosts[2];
  int64_t labels[kRows], i, k;
  void* failed = NULL;
  memset(hosts, 0, sizeof hosts);
  for (i = 0; i < 2; i++) {
    OK(tt_ctx_new(e->rt, &hosts[i].c));
    hosts[i].l = l;
    assert_int_equal(pthread_create(&hosts[i].thread, NULL, host_thread, &hosts[i]), 0);
  }
  for (k = 0; k < 20; k++) {
    assert_int_equal(take_epoch(c, l, labels), kRows);
    for (i = 0; i < kRows; i++) assert_int_equal(labels[i], i);
  }
  for (i = 0; i < 2; i++) __atomic_store_n(&hosts[i].stop, 1, __ATOMIC_RELAXED);
  for (i = 0; i < 2; i++) {
    pthread_join(hosts[i].thread, &failed);
    assert_null(failed);
    tt_ctx_release(hosts[i].c);
  }
  tt_loader_release(l);
  tt_dataset_release(d);
}

static void test_bad_arguments(void** state) {
  CTX;
  tt_dataset* d = rows_dataset(c);
  tt_dataset* stream = NULL;
  tt_dataset* none = NULL;
  tt_sampler* s = NULL;
  tt_loader* l = NULL;
  tt_loader_opts o;
  Made m = {4, -1, -1, 0, 0};
  tt_tensor *outs[2], *scalar = NULL, *uneven = NULL, *list[2];
  int64_t n = 0, three = 3;
  tt_scalar one;
  memset(&one, 0, sizeof one);
  memset(&o, 0, sizeof o);
  one.kind = TT_SCALAR_FLOAT;
  OK(tt_scalar_tensor(c, &one, 0, &scalar));
  OK(tt_ones(c, &three, 1, NULL, &uneven));
  FAILS(TT_SHAPE, tt_dataset_tensors(c, (const tt_tensor* const*)&scalar, 1, &none));
  FAILS(TT_INVALID_ARG, tt_dataset_tensors(c, NULL, 0, &none));
  three = 4;
  OK(tt_ones(c, &three, 1, NULL, &list[0]));
  list[1] = uneven;
  FAILS(TT_SHAPE, tt_dataset_tensors(c, (const tt_tensor* const*)list, 2, &none));
  FAILS(TT_INVALID_ARG, tt_dataset_map(c, -1, make_sample, &m, drop_made, &none));
  FAILS(TT_INVALID_ARG, tt_dataset_map(c, 1, NULL, &m, drop_made, &none));
  assert_int_equal(m.drops, 2);
  OK(tt_dataset_stream(c, make_sample, &m, drop_made, &stream));
  OK(tt_sampler_sequential(c, kRows + 5, &s));
  FAILS(TT_INVALID_ARG, tt_loader_new(c, stream, s, NULL, &l));
  FAILS(TT_INVALID_ARG, tt_dataset_get(c, stream, 0, outs, 2, &n));
  o.set = 1;
  FAILS(TT_INVALID_ARG, tt_loader_new(c, d, NULL, &o, &l));
  o.set = 2;
  o.workers = -1;
  FAILS(TT_INVALID_ARG, tt_loader_new(c, d, NULL, &o, &l));
  o.workers = INT64_MAX;
  FAILS(TT_INVALID_ARG, tt_loader_new(c, d, NULL, &o, &l));
  o.set = 16;
  FAILS(TT_UNSUPPORTED_OPTION, tt_loader_new(c, d, NULL, &o, &l));
  FAILS(TT_BAD_HANDLE, tt_loader_new(c, (tt_dataset*)s, NULL, NULL, &l));
  l = loader_of(c, d, s, kRows, 1, 0); /* the sampler has more indices than there are samples */
  FAILS(TT_BUFFER_TOO_SMALL, tt_loader_next(c, l, outs, 1, &n));
  assert_int_equal(n, 2);
  OK(tt_loader_next(c, l, outs, 2, &n)); /* the batch is still there */
  tt_tensor_release(outs[0]);
  tt_tensor_release(outs[1]);
  FAILS(TT_INDEX, tt_loader_next(c, l, outs, 2, &n));
  assert_memory_equal(tt_ctx_error(c)->message, "loader_next: index is", 21); /* named once */
  OK(tt_loader_next(c, l, outs, 2, &n));
  assert_int_equal(n, 0);
  tt_loader_release(l);
  tt_sampler_release(s);
  tt_dataset_release(stream);
  tt_dataset_release(d);
  tt_tensor_release(list[0]);
  tt_tensor_release(uneven);
  tt_tensor_release(scalar);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_order),        TEST(test_state),
                                     TEST(test_samplers),     TEST(test_samplers_of_processes),
                                     TEST(test_datasets),     TEST(test_callbacks),
                                     TEST(test_reentrancy),   TEST(test_threads_of_the_application),
                                     TEST(test_bad_arguments)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
