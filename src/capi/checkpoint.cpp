// Checkpoints: the state of a module, an optimizer, a scheduler and a generator in one file of
// named tensors.
#include "capi/api.h"
#include "capi/module.h"
#include "capi/optim.h"
#include "ops/gen/ops.h"
#include "io/safetensors.h"
#include "nn/module.h"

#include <string.h>

using namespace TT_NS;

namespace {

// Prefixes of the parts in the file.
constexpr char kModule[] = "module.";
constexpr char kTensors[] = "optimizer.";
constexpr char kNumbers[] = "optimizer_numbers.";
constexpr char kScheduler[] = "scheduler.";
constexpr char kExtra[] = "extra.";
constexpr char kGenerator[] = "generator";

struct Parts {
  Module* module = nullptr;
  Optimizer* optimizer = nullptr;
  Scheduler* scheduler = nullptr;
  Generator* generator = nullptr;
  StateDict* extra = nullptr;
};

Parts parts_arg(const tt_checkpoint* p) {
  if (!p) fail_arg(TT_INVALID_ARG, "parts", "parts is NULL");
  if (p->struct_size < sizeof(tt_checkpoint))
    fail_arg(TT_ABI, "parts", "parts.struct_size is {}: must be at least {}", p->struct_size,
             sizeof(tt_checkpoint));
  Parts out;
  if (p->module) out.module = &module_arg(p->module, "parts.module", 2);
  if (p->optimizer) out.optimizer = &optimizer_arg(p->optimizer, "parts.optimizer", 2);
  if (p->scheduler) out.scheduler = &scheduler_arg(p->scheduler, "parts.scheduler", 2);
  if (p->generator) out.generator = generator_arg(p->generator, "parts.generator", 2);
  if (p->extra) out.extra = &state_dict_arg(p->extra, "parts.extra", 2);
  return out;
}

void append(StateDict& d, const char* prefix, const char* name, TensorRef t) {
  Text full(prefix);
  d.append(full.add(name).c_str(), std::move(t));
}
TensorRef number(double v) { return new_scalar(Scalar(v), Dtype::kF64); }

StateDictRef gather(const Parts& p) {
  StateDictRef all = new_state_dict();
  char name[kStateName];
  if (p.module) {
    StateDictRef own = named_tensors(*p.module, Named::kState);
    for (StateDict::Entry& e : own->entries) append(*all, kModule, e.name.c_str(), e.tensor);
  }
  if (p.optimizer) {
    for (int64_t i = 0, n = num_tensors(*p.optimizer); i < n; i++) {
      TensorRef t = tensor_at(*p.optimizer, i, name, sizeof name);
      append(*all, kTensors, name, std::move(t));
    }
    for (int64_t i = 0, n = num_numbers(*p.optimizer); i < n; i++) {
      const double v = number_at(*p.optimizer, i, name, sizeof name);
      append(*all, kNumbers, name, number(v));
    }
  }
  for (int64_t i = 0, n = p.scheduler ? num_numbers(*p.scheduler) : 0; i < n; i++) {
    const double v = number_at(*p.scheduler, i, name, sizeof name);
    append(*all, kScheduler, name, number(v));
  }
  if (p.generator) {
    const Rng now = p.generator->state();
    const int64_t two[1] = {2};
    TensorRef t = new_tensor(two, Dtype::kI64, kCpuDevice);
    t->as<int64_t>()[0] = int64_t(now.seed);
    t->as<int64_t>()[1] = int64_t(now.offset);
    all->append(kGenerator, std::move(t));
  }
  if (p.extra)
    for (StateDict::Entry& e : p.extra->entries) append(*all, kExtra, e.name.c_str(), e.tensor);
  return all;
}

// Returns the entries of `all` below a prefix, without the prefix.
StateDictRef below(const StateDict& all, const char* prefix) {
  StateDictRef out = new_state_dict();
  const size_t n = strlen(prefix);
  for (const StateDict::Entry& e : all.entries)
    if (strncmp(e.name.c_str(), prefix, n) == 0) out->append(e.name.c_str() + n, e.tensor);
  return out;
}

double number_of(const StateDict::Entry& e) {
  if (e.tensor->dtype != Dtype::kF64 || e.tensor->numel != 1)
    fail_arg(TT_FORMAT, "path", "\"{}\" is not a number", e.name.c_str());
  return *e.tensor->as<double>();
}

// The former state of a part, restored unless the whole load succeeds.
template <class T, class State, State T::*member> class Restore {
 public:
  explicit Restore(T* part) : part_(part) {
    if (part) saved_ = part->*member;
  }
  ~Restore() {
    if (part_ && !done_) part_->*member = std::move(saved_);
  }
  Restore(const Restore&) = delete;
  void keep() { done_ = true; }

 private:
  T* part_;
  State saved_;
  bool done_ = false;
};

// The same for a scheduler, whose parts may be nested: by its list of numbers.
class SchedulerSnapshot {
 public:
  explicit SchedulerSnapshot(Scheduler* s) : part_(s) {
    char name[kStateName];
    for (int64_t i = 0, n = s ? num_numbers(*s) : 0; i < n; i++)
      values_.push_back(number_at(*s, i, name, sizeof name));
  }
  ~SchedulerSnapshot() {
    char name[kStateName];
    try {
      for (int64_t i = 0; part_ && !done_ && i < values_.size(); i++) {
        number_at(*part_, i, name, sizeof name);
        load_number(*part_, name, values_[i]);
      }
    } catch (...) {  // its own names and numbers: nothing is refused or allocated
    }
  }
  SchedulerSnapshot(const SchedulerSnapshot&) = delete;
  void keep() { done_ = true; }

 private:
  Scheduler* part_;
  SmallVec<double, 8> values_;
  bool done_ = false;
};

void load_optimizer(Optimizer& o, const StateDict& all) {
  StateDictRef tensors = below(all, kTensors);
  StateDictRef numbers = below(all, kNumbers);
  if (numbers->entries.empty()) fail_arg(TT_FORMAT, "path", "the file has no optimizer state");
  for (ParamSlot& p : o.params) {
    p.step = -1;
    for (double& x : p.number) x = kNan;
    for (TensorRef& t : p.state) t.reset();
  }
  o.solved.reset();
  for (StateDict::Entry& e : tensors->entries) load_tensor(o, e.name.c_str(), *e.tensor);
  for (StateDict::Entry& e : numbers->entries) load_number(o, e.name.c_str(), number_of(e));
}

void load_scheduler(Scheduler& s, const StateDict& all) {
  StateDictRef numbers = below(all, kScheduler);
  if (numbers->entries.empty()) fail_arg(TT_FORMAT, "path", "the file has no scheduler state");
  for (StateDict::Entry& e : numbers->entries) load_number(s, e.name.c_str(), number_of(e));
}

void load_all(const Parts& p, const StateDict& all) {
  Rng rng;
  if (p.generator) {
    const int64_t i = all.find(kGenerator);
    const Tensor* t = i < 0 ? nullptr : all.entries[i].tensor.get();
    if (!t || t->dtype != Dtype::kI64 || t->numel != 2)
      fail_arg(TT_FORMAT, "path", "the file has no generator state");
    rng.seed = uint64_t(t->as<int64_t>()[0]);
    rng.offset = uint64_t(t->as<int64_t>()[1]);
  }
  StateDictRef extra = below(all, kExtra);
  StateDictRef state = below(all, kModule);
  StateDictRef merged = new_state_dict();
  if (p.extra) {
    for (const StateDict::Entry& e : p.extra->entries) merged->append(e.name.c_str(), e.tensor);
    for (const StateDict::Entry& e : extra->entries) merged->set(e.name.c_str(), e.tensor);
  }
  Restore<Optimizer, decltype(Optimizer::params), &Optimizer::params> params(p.optimizer);
  Restore<Optimizer, decltype(Optimizer::groups), &Optimizer::groups> groups(p.optimizer);
  Restore<Optimizer, decltype(Optimizer::solved), &Optimizer::solved> solved(p.optimizer);
  SchedulerSnapshot schedule(p.scheduler);
  if (p.optimizer) load_optimizer(*p.optimizer, all);
  if (p.scheduler) load_scheduler(*p.scheduler, all);
  if (p.module) load_state_dict(*p.module, *state, true);  // all or nothing
  params.keep();
  groups.keep();
  solved.keep();
  schedule.keep();
  if (p.generator) p.generator->set(rng);
  if (p.extra) p.extra->swap_tensors(*merged);
}

}  // namespace

tt_status tt_checkpoint_save(tt_ctx* h, const char* path, const tt_checkpoint* parts) {
  return api_call(h, "checkpoint_save", [&](Ctx&) {
    str_arg(path, "path", 1);
    StateDictRef all = gather(parts_arg(parts));
    SmallVec<const char*, 16> names;
    SmallVec<const Tensor*, 16> tensors;
    for (const StateDict::Entry& e : all->entries) {
      names.push_back(e.name.c_str());
      tensors.push_back(e.tensor.get());
    }
    static constexpr const char* kMetadata[] = {"format", "tt-checkpoint-1"};
    save_tensors(path, names, tensors, kMetadata);
  });
}

tt_status tt_checkpoint_load(tt_ctx* h, const char* path, const tt_checkpoint* parts) {
  return api_call(h, "checkpoint_load", [&](Ctx&) {
    str_arg(path, "path", 1);
    const Parts p = parts_arg(parts);
    Ref<TensorFile> file = open_tensors(path, false);
    StateDictRef all = new_state_dict();
    for (int64_t i = 0; i < file->header.tensors.size(); i++)
      all->append(file->header.tensors[i].name, read_tensor(*file, i));
    load_all(p, *all);
  });
}
