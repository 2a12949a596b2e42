#define _POSIX_C_SOURCE 200809L
#include "host_pool.h"

#include <pthread.h>
#include <stdlib.h>

enum { MAX_WORKERS = 64 };

struct host_pool {
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  pthread_t threads[MAX_WORKERS];
  int n_threads, stop, busy, in_loop;
  long loops, generation;
  /* the loop in progress */
  int64_t n, grain, next;
  tt_range_fn body;
  void* body_ctx;
};

/* Takes ranges until there are none left; called and left with the lock held. */
static void take_ranges(host_pool* p) {
  while (p->next < p->n) {
    const int64_t begin = p->next;
    const int64_t end = p->n - begin < p->grain ? p->n : begin + p->grain;
    p->next = end;
    pthread_mutex_unlock(&p->lock);
    p->body(p->body_ctx, begin, end);
    pthread_mutex_lock(&p->lock);
  }
}

static void* worker(void* arg) {
  host_pool* p = arg;
  long seen = 0;
  pthread_mutex_lock(&p->lock);
  for (;;) {
    while (!p->stop && seen == p->generation) pthread_cond_wait(&p->work, &p->lock);
    if (p->stop) break;
    seen = p->generation;
    p->busy++;
    take_ranges(p);
    if (--p->busy == 0) pthread_cond_signal(&p->done);
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

host_pool* host_pool_new(int workers) {
  host_pool* p = calloc(1, sizeof *p);
  if (!p) return NULL;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->work, NULL);
  pthread_cond_init(&p->done, NULL);
  for (; p->n_threads < workers && p->n_threads < MAX_WORKERS; p->n_threads++)
    if (pthread_create(&p->threads[p->n_threads], NULL, worker, p)) break;
  return p;
}

void host_pool_free(host_pool* p) {
  if (!p) return;
  pthread_mutex_lock(&p->lock);
  p->stop = 1;
  pthread_cond_broadcast(&p->work);
  pthread_mutex_unlock(&p->lock);
  for (int i = 0; i < p->n_threads; i++) pthread_join(p->threads[i], NULL);
  pthread_cond_destroy(&p->work);
  pthread_cond_destroy(&p->done);
  pthread_mutex_destroy(&p->lock);
  free(p);
}

static int32_t num_threads(void* user) { return ((host_pool*)user)->n_threads + 1; }

/* The calling thread works along. A loop inside a loop runs serially. */
static int32_t parallel_for(void* user, int64_t n, int64_t grain, tt_range_fn body,
                            void* body_ctx) {
  host_pool* p = user;
  pthread_mutex_lock(&p->lock);
  if (p->in_loop) {
    pthread_mutex_unlock(&p->lock);
    for (int64_t i = 0; i < n; i += grain) body(body_ctx, i, n - i < grain ? n : i + grain);
    return 0;
  }
  p->in_loop = 1;
  p->loops++;
  p->generation++;
  p->n = n;
  p->grain = grain;
  p->next = 0;
  p->body = body;
  p->body_ctx = body_ctx;
  pthread_cond_broadcast(&p->work);
  take_ranges(p);
  while (p->busy) pthread_cond_wait(&p->done, &p->lock);
  p->in_loop = 0;
  pthread_mutex_unlock(&p->lock);
  return 0;
}

tt_executor host_pool_executor(host_pool* p) {
  tt_executor e = {sizeof e, p, num_threads, parallel_for};
  return e;
}
long host_pool_loops(const host_pool* p) { return p->loops; }
