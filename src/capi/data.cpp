// Datasets, samplers, loaders.
#include "capi/api.h"
#include "base/finalizer.h"
#include "data/loader.h"

#include <string.h>

using namespace TT_NS;

template <class T> static T* object_of(const void* h, uint32_t tag) {
  auto* object = static_cast<T*>(const_cast<void*>(h));
  return object && object->tag == tag ? object : nullptr;
}
static Dataset* dataset_of(const tt_dataset* h) { return object_of<Dataset>(h, kTagDataset); }
static Sampler* sampler_of(const tt_sampler* h) { return object_of<Sampler>(h, kTagSampler); }
static Loader* loader_of(const tt_loader* h) { return object_of<Loader>(h, kTagLoader); }

static const Dataset& dataset_arg(const tt_dataset* h, const char* arg, int32_t index) {
  if (!dataset_of(h)) fail_handle(h, arg, index, "dataset");
  return *dataset_of(h);
}
static Sampler& sampler_arg(const tt_sampler* h, const char* arg, int32_t index) {
  if (!sampler_of(h)) fail_handle(h, arg, index, "sampler");
  return *sampler_of(h);
}
static Loader& loader_arg(const tt_loader* h) {
  if (!loader_of(h)) fail_handle(h, "l", 1, "loader");
  return *loader_of(h);
}
static tt_dataset* handle_of(Ref<Dataset> d) { return reinterpret_cast<tt_dataset*>(d.leak()); }
static tt_sampler* handle_of(Ref<Sampler> s) { return reinterpret_cast<tt_sampler*>(s.leak()); }

// ---- datasets ----

tt_status tt_dataset_tensors(tt_ctx* h, const tt_tensor* const* tensors, int64_t n,
                             tt_dataset** out) {
  if (out) *out = nullptr;
  return api_call(h, "dataset_tensors", [&](Ctx&) {
    const TensorSpan list = tensors_arg(tensors, n, "tensors", 1, false);
    out_arg(out, "out", 3);
    *out = handle_of(tensor_dataset(list));
  });
}

// Makes a dataset of a callback; its user is dropped if that fails.
template <class F> static tt_status make_callback_dataset(tt_ctx* h, const char* call, void* user,
                                                          void (*drop)(void*), tt_dataset** out,
                                                          const F& make) {
  if (out) *out = nullptr;
  bool passed_on = false;
  const tt_status status = api_call(h, call, [&](Ctx&) {
    Ref<Dataset> made = make();
    passed_on = true;
    *out = handle_of(std::move(made));
  });
  if (!passed_on) run_drop(drop, user);
  return status;
}
tt_status tt_dataset_map(tt_ctx* h, int64_t size, tt_sample_fn fn, void* user, void (*drop)(void*),
                         tt_dataset** out) {
  return make_callback_dataset(h, "dataset_map", user, drop, out, [&] {
    if (size < 0) fail_arg(TT_INVALID_ARG, "size", "size is {}: must not be negative", size);
    if (!fn) fail_null("fn", 2);
    out_arg(out, "out", 5);
    return callback_dataset(size, fn, user, drop);
  });
}
tt_status tt_dataset_stream(tt_ctx* h, tt_sample_fn fn, void* user, void (*drop)(void*),
                            tt_dataset** out) {
  return make_callback_dataset(h, "dataset_stream", user, drop, out, [&] {
    if (!fn) fail_null("fn", 1);
    out_arg(out, "out", 4);
    return callback_dataset(-1, fn, user, drop);
  });
}

tt_status tt_dataset_concat(tt_ctx* h, const tt_dataset* const* datasets, int64_t n,
                            tt_dataset** out) {
  if (out) *out = nullptr;
  return api_call(h, "dataset_concat", [&](Ctx&) {
    if (n < 0) fail_arg(TT_INVALID_ARG, "n", "n is {}: must not be negative", n);
    if (n && !datasets) fail_null("datasets", 1);
    out_arg(out, "out", 3);
    SmallVec<const Dataset*, 8> parts;
    for (int64_t i = 0; i < n; i++) parts.push_back(&dataset_arg(datasets[i], "datasets", 1));
    *out = handle_of(concat_datasets(parts.span()));
  });
}
tt_status tt_dataset_subset(tt_ctx* h, const tt_dataset* d, const int64_t* indices, int64_t n,
                            tt_dataset** out) {
  if (out) *out = nullptr;
  return api_call(h, "dataset_subset", [&](Ctx&) {
    const Dataset& whole = dataset_arg(d, "d", 1);
    const Ints list = int_list_arg(indices, n, "indices", 2);
    out_arg(out, "out", 4);
    *out = handle_of(subset_of(whole, list));
  });
}
int64_t tt_dataset_size(const tt_dataset* h) { return dataset_of(h) ? dataset_of(h)->size() : 0; }
tt_status tt_dataset_get(tt_ctx* h, const tt_dataset* d, int64_t index, tt_tensor** outs,
                         int64_t cap, int64_t* n_outs) {
  clear_list(outs, cap, n_outs);
  return api_call(h, "dataset_get", [&](Ctx& c) {
    const Dataset& dataset = dataset_arg(d, "d", 1);
    check_list(outs, cap, n_outs);
    if (dataset.is_stream())
      fail_arg(TT_INVALID_ARG, "d", "the dataset is a stream: it has no indices");
    give_list(c, outs, cap, n_outs, sample_of(dataset, index));
  });
}
void tt_dataset_retain(tt_dataset* h) {
  if (Dataset* d = dataset_of(h)) ref_inc_external(&d->refs);
}
void tt_dataset_release(tt_dataset* h) {
  if (Dataset* d = dataset_of(h)) Ref<Dataset>::adopt(d).reset();
}

// ---- samplers ----

tt_status tt_sampler_sequential(tt_ctx* h, int64_t n, tt_sampler** out) {
  if (out) *out = nullptr;
  return api_call(h, "sampler_sequential", [&](Ctx&) {
    out_arg(out, "out", 2);
    *out = handle_of(sequential_sampler(n));
  });
}
tt_status tt_sampler_random(tt_ctx* h, int64_t n, int32_t replacement, int64_t num_samples,
                            int64_t seed, tt_sampler** out) {
  if (out) *out = nullptr;
  return api_call(h, "sampler_random", [&](Ctx&) {
    out_arg(out, "out", 5);
    *out = handle_of(random_sampler(n, replacement != 0, num_samples, seed));
  });
}
tt_status tt_sampler_weighted(tt_ctx* h, const double* weights, int64_t n, int64_t num_samples,
                              int32_t replacement, int64_t seed, tt_sampler** out) {
  if (out) *out = nullptr;
  return api_call(h, "sampler_weighted", [&](Ctx&) {
    const Span<const double> list = doubles_arg(weights, n, "weights", 1);
    out_arg(out, "out", 6);
    *out = handle_of(weighted_sampler(list, num_samples, replacement != 0, seed));
  });
}
tt_status tt_sampler_subset(tt_ctx* h, const int64_t* indices, int64_t n, int32_t shuffle,
                            int64_t seed, tt_sampler** out) {
  if (out) *out = nullptr;
  return api_call(h, "sampler_subset", [&](Ctx&) {
    const Ints list = int_list_arg(indices, n, "indices", 1);
    out_arg(out, "out", 5);
    *out = handle_of(subset_sampler(list, shuffle != 0, seed));
  });
}
tt_status tt_sampler_distributed(tt_ctx* h, int64_t n, int32_t rank, int32_t size, int32_t shuffle,
                                 int32_t drop_last, int64_t seed, tt_sampler** out) {
  if (out) *out = nullptr;
  return api_call(h, "sampler_distributed", [&](Ctx&) {
    out_arg(out, "out", 7);
    *out = handle_of(distributed_sampler(n, rank, size, shuffle != 0, drop_last != 0, seed));
  });
}
int64_t tt_sampler_length(const tt_sampler* h) { return sampler_of(h) ? sampler_of(h)->length : 0; }
tt_status tt_sampler_next(tt_ctx* h, tt_sampler* s, int64_t* indices, int64_t cap, int64_t* n) {
  if (n) *n = 0;
  return api_call(h, "sampler_next", [&](Ctx&) {
    Sampler& sampler = sampler_arg(s, "s", 1);
    if (cap < 0) fail_arg(TT_INVALID_ARG, "cap", "cap is {}: must not be negative", cap);
    if (cap && !indices) fail_null("indices", 2);
    out_arg(n, "n", 4);
    *n = sampler_next(sampler, indices, cap);
  });
}
static void write_state(const SamplerState& from, int64_t* to) {
  to[0] = from.seed;
  to[1] = from.epoch;
  to[2] = from.position;
}
static SamplerState read_state(const int64_t* from) { return {from[0], from[1], from[2]}; }
tt_status tt_sampler_state(tt_ctx* h, tt_sampler* s, int64_t state[3]) {
  return api_call(h, "sampler_state", [&](Ctx&) {
    Sampler& sampler = sampler_arg(s, "s", 1);
    out_arg(state, "state", 2);
    write_state(sampler_state(sampler), state);
  });
}
tt_status tt_sampler_set_state(tt_ctx* h, tt_sampler* s, const int64_t state[3]) {
  return api_call(h, "sampler_set_state", [&](Ctx&) {
    Sampler& sampler = sampler_arg(s, "s", 1);
    out_arg(state, "state", 2);
    sampler_set_state(sampler, read_state(state));
  });
}
void tt_sampler_retain(tt_sampler* h) {
  if (Sampler* s = sampler_of(h)) ref_inc_external(&s->refs);
}
void tt_sampler_release(tt_sampler* h) {
  if (Sampler* s = sampler_of(h)) Ref<Sampler>::adopt(s).reset();
}

// ---- loaders ----

tt_status tt_loader_new(tt_ctx* h, tt_dataset* dataset, tt_sampler* sampler,
                        const tt_loader_opts* opts, tt_loader** out) {
  if (out) *out = nullptr;
  return api_call(h, "loader_new", [&](Ctx&) {
    const Dataset& d = dataset_arg(dataset, "dataset", 1);
    Sampler* s = sampler ? &sampler_arg(sampler, "sampler", 2) : nullptr;
    check_opts(opts, 4);
    out_arg(out, "out", 4);
    LoaderOptions o;
    if (opts_has(opts, 0)) o.batch_size = opts->batch_size;
    if (opts_has(opts, 1)) o.workers = opts->workers;
    if (opts_has(opts, 2)) o.prefetch = opts->prefetch;
    o.drop_last = opts_has(opts, 3) && opts->drop_last;
    Ref<Loader> made = new_loader(Ref<Dataset>::share(&d), Ref<Sampler>::share(s), o);
    *out = reinterpret_cast<tt_loader*>(made.leak());
  });
}
tt_status tt_loader_next(tt_ctx* h, tt_loader* l, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  clear_list(outs, cap, n_outs);
  return api_call(h, "loader_next", [&](Ctx& c) {
    Loader& loader = loader_arg(l);
    check_list(outs, cap, n_outs);
    reserve_outs(c, min(cap, kMaxFields));
    int64_t n = 0;
    TensorList batch = loader_next(loader, cap, &n);
    *n_outs = n;
    if (n > cap)
      fail_arg(TT_BUFFER_TOO_SMALL, "outs", "outs has room for {}, there are {}", cap, n);
    give_list(c, outs, cap, n_outs, std::move(batch));
  });
}
tt_status tt_loader_work(tt_ctx* h, tt_loader* l, int32_t* out) {
  if (out) *out = 0;
  return api_call(h, "loader_work", [&](Ctx&) {
    Loader& loader = loader_arg(l);
    out_arg(out, "out", 2);
    *out = loader_work(loader);
  });
}
int64_t tt_loader_length(const tt_loader* h) {
  return loader_of(h) ? loader_length(*loader_of(h)) : 0;
}
tt_status tt_loader_state(tt_ctx* h, tt_loader* l, int64_t state[3]) {
  return api_call(h, "loader_state", [&](Ctx&) {
    Loader& loader = loader_arg(l);
    out_arg(state, "state", 2);
    write_state(loader_state(loader), state);
  });
}
tt_status tt_loader_set_state(tt_ctx* h, tt_loader* l, const int64_t state[3]) {
  return api_call(h, "loader_set_state", [&](Ctx&) {
    Loader& loader = loader_arg(l);
    out_arg(state, "state", 2);
    loader_set_state(loader, read_state(state));
  });
}
void tt_loader_retain(tt_loader* h) {
  if (Loader* l = loader_of(h)) ref_inc_external(&l->refs);
}
void tt_loader_release(tt_loader* h) {
  if (Loader* l = loader_of(h)) Ref<Loader>::adopt(l).reset();
}
