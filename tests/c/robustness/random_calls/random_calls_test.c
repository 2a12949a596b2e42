/* Programs of random calls end with nothing alive: no memory, no callback without its drop. Each
   runs in its own process, so that the seed of a crash is known. By hand: random_calls_test
   --programs 10000 --seed 1 --calls 6500 (--tell 1 prints each call) */
#include "program.h"
#include "share.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMemoryLimit = 4 << 20, kProgramsPerProcess = 10 };

static void act(Program* p) {
  const int kind = below(p, 100);
  p->at = below(p, kCtxs);
  p->c = p->ctxs[p->at];
  if (kind < 50) call_operator(p);
  else if (kind < 56) act_tensor(p);
  else if (kind < 70) act_autograd(p);
  else if (kind < 79) act_module(p);
  else if (kind < 85) act_training(p);
  else if (kind < 89) act_state(p);
  else if (kind < 91) act_host(p);
  else if (kind < 95) act_ctx(p);
  else release_something(p);
}

static void open_program(Program* p, uint64_t seed, Report* report) {
  const tt_allocator a = host_allocator(&host);
  const tt_runtime_opts opts = {
      .struct_size = sizeof opts, .allocator = &a, .memory_limit = kMemoryLimit};
  int i;
  memset(p, 0, sizeof *p);
  p->random = seed;
  p->report = report;
  snprintf(p->folder, sizeof p->folder, "/tmp/tt_random_XXXXXX");
  if (!mkdtemp(p->folder)) program_fails(p, "no folder", p->folder);
  if (tt_runtime_new(&opts, &p->rt)) program_fails(p, "no runtime", "");
  tt_runtime_manual_seed(p->rt, seed);
  for (i = 0; i < kCtxs; i++)
    if (tt_ctx_new(p->rt, &p->ctxs[i])) program_fails(p, "no ctx", "");
  if (tt_ctx_new(p->rt, &p->watcher)) program_fails(p, "no ctx", "");
  p->c = p->ctxs[0];
  if (!num_operators()) find_operators(p->c);
  if (one_in(p, 4)) open_backend(p);
}

static void remove_folder(const char* folder) {
  DIR* d = opendir(folder);
  struct dirent* e;
  char path[400];
  while (d && (e = readdir(d))) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    unlink(path);
  }
  if (d) closedir(d);
  rmdir(folder);
}

/* Polls and a cancelled token are removed: they must not make the last calls fail. */
static void close_program(Program* p) {
  static tt_live_row rows[64];
  int64_t n = 0, i;
  char text[100];
  snprintf(p->report->what, sizeof p->report->what, "the end of the program");
  release_all(p);
  for (i = 0; i < kCtxs; i++) tt_ctx_release(p->ctxs[i]);
  if (tt_runtime_live(p->watcher, rows, 64, &n)) program_fails(p, "what lives cannot be told", "");
  for (i = 0; i < n; i++) {
    const char* kind = rows[i].kind;
    if (strcmp(kind, "ctx") && strcmp(kind, "runtime") && strcmp(kind, "generator"))
      program_fails(p, "something lives on", kind);
  }
  tt_ctx_release(p->watcher);
  tt_runtime_release(p->rt);
  remove_folder(p->folder);
  snprintf(text, sizeof text, "%lld blocks, %lld callbacks, %lld drops", (long long)host.blocks,
           (long long)p->registered, (long long)p->drops);
  if (host.blocks) program_fails(p, "memory leaks", text);
  if (p->registered != p->drops) program_fails(p, "drops are missing", text);
}

static void run_program(uint64_t seed, int64_t calls, Report* report) {
  static Program p;
  report->seed = seed;
  report->call = 0;
  open_program(&p, seed, report);
  while (report->call < calls) act(&p);
  close_program(&p);
}

/* 0, or 1 after printing where a child died. */
static int run_children(uint64_t seed, int64_t n, int64_t calls, Report* report) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    int64_t i;
    for (i = 0; i < n; i++) run_program(seed + (uint64_t)i, calls, report);
    exit(0);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  printf("seed %llu died with status %d at call %lld: %s\n", (unsigned long long)report->seed,
         status, (long long)report->call, report->what);
  return 1;
}

int main(int argc, char** argv) {
  int64_t programs = 50 / share(), seed = 1, calls = 6500, done, died = 0;
  Report* report =
      mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int i;
  for (i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--programs")) programs = atoll(argv[i + 1]);
    if (!strcmp(argv[i], "--seed")) seed = atoll(argv[i + 1]);
    if (!strcmp(argv[i], "--calls")) calls = atoll(argv[i + 1]);
    if (!strcmp(argv[i], "--tell")) report->told = atoi(argv[i + 1]);
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (done = 0; done < programs;) {
    const int64_t left = programs - done,
                  n = left < kProgramsPerProcess ? left : kProgramsPerProcess;
    const uint64_t first = (uint64_t)(seed + done);
    const int dead = run_children(first, n, calls, report);
    died += dead;
    done += dead ? (int64_t)(report->seed - first) + 1 : n;
  }
  printf("%lld programs of %lld calls, %lld died\n", (long long)programs, (long long)calls,
         (long long)died);
  return died != 0;
}
