#include "dist/group.h"

#include "dist/nccl.h"

#include <string.h>

namespace TT_NS {

// ---- connections ----

void Connection::destroy(Connection* c) noexcept {
  if (c->handle && c->pid == os_pid()) c->engine->close(c->handle);
  c->~Connection();
  mem_retire(c, sizeof *c);
}

static const DistEngine* open_engine(const char* backend, const char* path) {
  char file[80];
  const FmtArg args[] = {backend};
  format_to(file, int64_t(sizeof file), "libtt_{}.so", args);
  const char* names[] = {path ? path : file, nullptr};
  void* library = os_dlopen(names);
  if (!library)
    fail_arg(TT_IO, "backend",
             "cannot open the library \"{}\" of the backend \"{}\" (searched: {}): {}", names[0],
             backend, path ? "this path" : "beside libtt and on the path of the loader",
             os_dlerror());
  auto entry = reinterpret_cast<DistEntry>(os_dlsym(library, kDistEntryName));
  if (!entry)
    fail_arg(TT_ABI, "backend", "\"{}\" is no library of a backend: it does not export {}",
             names[0], kDistEntryName);
  const DistEngine* engine = nullptr;
  const int32_t status = entry(kDistBuildId, &engine);
  if (status || !engine || engine->build_id != kDistBuildId)
    fail_arg(TT_ABI, "backend",
             "\"{}\" is from another build than this library: both must be from the same build",
             names[0]);
  return engine;
}

// What moves bytes between processes: an engine, and NCCL, whose ranks meet by the engine.
struct Backend {
  const DistEngine* engine;
  NcclLibrary nccl;
};

static Backend open_backend(const char* name, int32_t rank, int32_t size, const char* path) {
  Backend b = {};
  const bool lacks_ranks = rank < 0 || size < 0;
  if (strcmp(name, "nccl") == 0) {
    b.nccl = open_nccl(path);
    b.engine = open_engine(lacks_ranks ? "mpi" : "gloo", nullptr);
  } else {
    b.engine = open_engine(name, path);
  }
  const bool knows_ranks = strcmp(b.engine->name, "mpi") == 0;
  if (lacks_ranks && !knows_ranks)
    fail_arg(TT_INVALID_ARG, "rank", "rank is {} and size {}: {} needs both", rank, size, name);
  return b;
}

static bool valid_backend(const char* name) {
  int n = 0;
  for (; name[n] && n < 32; n++)
    if (!(name[n] >= 'a' && name[n] <= 'z') && name[n] != '_') return false;
  return n > 0 && n < 32;
}

static Ref<Connection> connect(const DistEngine* engine, const DistOpen& what) {
  auto* c = new (mem_alloc(sizeof(Connection))) Connection{};
  c->refs = 1;
  c->engine = engine;
  c->pid = os_pid();
  Ref<Connection> made = Ref<Connection>::adopt(c);
  DistFailure why = {-1, ""};
  if (engine->open(&what, &c->handle, &c->rank, &c->size, &why)) {
    c->handle = nullptr;
    fail(TT_DISTRIBUTED, "rank {} of {} cannot connect by {}: {}", what.rank, what.size,
         engine->name, why.text);
  }
  return made;
}

// ---- groups ----

static Ref<Group> make_group(Ref<Connection> connection, int64_t timeout_ns) {
  auto* g = new (mem_alloc(sizeof(Group))) Group{};
  g->tag = kTagGroup;
  g->refs = 1;
  g->rt = ctx().rt;
  ref_inc(&g->rt->refs);
  g->connection = std::move(connection);
  g->timeout_ns = timeout_ns;
  for (Lane& l : g->lanes) l.group = g;
  return Ref<Group>::adopt(g);
}

Ref<Group> new_group(const char* backend, int32_t rank, int32_t size, const char* rendezvous,
                     const GroupOptions& options) {
  if (size < -1 || size == 0)
    fail_arg(TT_INVALID_ARG, "size", "size is {}: must be positive, or -1 if the backend knows it",
             size);
  if (rank < -1 || (size > 0 && rank >= size))
    fail_arg(TT_INVALID_ARG, "rank", "rank is {}: must be below the size, {}", rank, size);
  if (options.timeout_ns <= 0)
    fail_arg(TT_INVALID_ARG, "timeout_ms", "timeout_ms must be positive");
  Ref<Connection> connection;
  if (size != 1) {
    if (!backend || !valid_backend(backend))
      fail_arg(TT_INVALID_ARG, "backend",
               "backend is \"{}\": must be the name of one, such as gloo or mpi",
               backend ? backend : "");
    const Backend b = open_backend(backend, rank, size, options.library);
    connection = connect(b.engine, {rank, size, rendezvous ? rendezvous : "", options.timeout_ns});
    connection->nccl = b.nccl;
  }
  const int32_t my_rank = connection ? connection->rank : 0;
  const int32_t my_size = connection ? connection->size : 1;
  Ref<Group> g = make_group(std::move(connection), options.timeout_ns);
  g->rank = my_rank;
  g->size = my_size;
  for (int32_t r = 0; r < my_size; r++) g->members.push_back(r);
  return g;
}

const char* backend_name(const Group& g) noexcept {
  if (!g.connection) return "";
  return g.connection->nccl.opened() ? "nccl" : g.connection->engine->name;
}

bool can_use_cuda(const Group& g) noexcept {
  return g.size == 1 || (g.connection && g.connection->nccl.opened());
}

// The record that ranks exchange in a split.
struct Choice {
  int64_t color, key, channel;
};

Ref<Group> split_group(Group& parent, int64_t color, int64_t key) {
  constexpr int64_t kFields = sizeof(Choice) / sizeof(int64_t);
  const int64_t sizes[] = {parent.size, kFields};
  const TensorRef mine = new_tensor({&kFields, 1}, Dtype::kI64, kCpuDevice);
  const TensorRef all = new_tensor({sizes, 2}, Dtype::kI64, kCpuDevice);
  Connection* c = parent.connection.get();
  *mine->as<Choice>() = {color, key, c ? atomic_load(&c->last_channel, kRelaxed) : 0};
  run_work(parent, Job{DistCall::kAllGather, ReduceOp::kSum, 0, 0, mine, all});
  const Choice* choices = all->as<Choice>();
  int64_t channel = 0;
  for (int32_t r = 0; r < parent.size; r++) channel = max(channel, choices[r].channel + 1);
  if (channel >= kMaxDistChannels)
    fail(TT_DISTRIBUTED, "a process can make at most {} groups", kMaxDistChannels - 1);
  if (c) atomic_store(&c->last_channel, int32_t(channel), kRelaxed);
  if (color < 0) return {};
  Ref<Group> g = make_group(parent.connection, parent.timeout_ns);
  g->channel = int32_t(channel);
  SmallVec<int32_t, 16> order;
  for (int32_t r = 0; r < parent.size; r++) {
    if (choices[r].color != color) continue;
    int64_t at = order.size();
    while (at > 0 && choices[order[at - 1]].key > choices[r].key) at--;
    order.insert(at, r);
  }
  for (int32_t r : order) {
    if (r == parent.rank) g->rank = int32_t(g->members.size());
    g->members.push_back(parent.members[r]);
  }
  g->size = int32_t(g->members.size());
  return g;
}

}  // namespace TT_NS
