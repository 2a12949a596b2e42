// tt.hpp: tt's C API as C++17 sees it: handles that release themselves, statuses as exceptions.
// Optional and no part of the ABI; it names no operator: any function of tt.h is called through a
// Context.
//
//   tt::Context c;
//   tt::Tensor x = c(tt_randn, tt::shape{8, 64}, nullptr);         // one result is returned
//   tt::Tensor y = c(tt_relu, x);
//   auto [values, indices] = c.two(tt_max_dim, y, 1, nullptr);     // two results
//   c.run(tt_backward, loss, nullptr);                             // none
//
// Arguments are those of the C function between the ctx and the outs. A tt::shape or a tt::list
// stands for pointer and length.
#pragma once

#include "tt.h"

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tt {

// What a call that failed says; `status` is its code, `cause` the message of the error in the
// callback that made it fail, or "".
struct Error : std::runtime_error {
  tt_status status;
  std::string cause;
  Error(tt_status s, const std::string& message, std::string why = "")
      : std::runtime_error(message), status(s), cause(std::move(why)) {}
};

// A reference to an object of tt. Copies share the object.
template <class T, void (*retain)(T*), void (*release)(T*)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T* owned) : p_(owned) {}
  Handle(const Handle& o) : p_(o.p_) { retain(p_); }
  Handle(Handle&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Handle& operator=(Handle o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Handle() { release(p_); }
  T* get() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  T* p_ = nullptr;
};
using Tensor = Handle<tt_tensor, tt_tensor_retain, tt_tensor_release>;
using Module = Handle<tt_module, tt_module_retain, tt_module_release>;
using Optimizer = Handle<tt_optimizer, tt_optim_retain, tt_optim_release>;
using Scheduler = Handle<tt_scheduler, tt_scheduler_retain, tt_scheduler_release>;
using Generator = Handle<tt_generator, tt_generator_retain, tt_generator_release>;
using StateDict = Handle<tt_state_dict, tt_state_dict_retain, tt_state_dict_release>;
using SafeTensors = Handle<tt_safetensors, tt_safetensors_retain, tt_safetensors_release>;
using Dataset = Handle<tt_dataset, tt_dataset_retain, tt_dataset_release>;
using Sampler = Handle<tt_sampler, tt_sampler_retain, tt_sampler_release>;
using Loader = Handle<tt_loader, tt_loader_retain, tt_loader_release>;
using Graph = Handle<tt_graph, tt_graph_retain, tt_graph_release>;
using Plan = Handle<tt_plan, tt_plan_retain, tt_plan_release>;
using Compiled = Handle<tt_compiled, tt_compiled_retain, tt_compiled_release>;
using Cancel = Handle<tt_cancel, tt_cancel_retain, tt_cancel_release>;
// What contexts share: each thread has a Context of its own.
using Runtime = Handle<tt_runtime, tt_runtime_retain, tt_runtime_release>;

// Numbers as pointer and length.
struct shape {
  std::vector<int64_t> sizes;
  shape(std::initializer_list<int64_t> l) : sizes(l) {}
  explicit shape(std::vector<int64_t> v) : sizes(std::move(v)) {}
};
// Tensors as pointer and length; it holds them.
struct list {
  std::vector<Tensor> items;
  std::vector<tt_tensor*> tensors;
  list(std::initializer_list<Tensor> l) : list(std::vector<Tensor>(l)) {}
  explicit list(std::vector<Tensor> l) : items(std::move(l)) {
    for (const Tensor& t : items) tensors.push_back(t.get());
  }
};

class Context {
 public:
  explicit Context(const tt_runtime_opts* opts = nullptr) : Context(new_runtime(opts)) {}
  explicit Context(const Runtime& rt) { started(tt_ctx_new(rt.get(), &c_)); }
  ~Context() { tt_ctx_release(c_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  tt_ctx* get() const { return c_; }

  // A call without results.
  template <class F, class... A>
  void run(F f, A&&... a) {
    call(f, expand(a)..., std::tuple<>());
  }
  // A call with one result, a Tensor.
  template <class... P, class... A>
  Tensor operator()(tt_status (*f)(P...), A&&... a) {
    return make<Tensor>(f, std::forward<A>(a)...);
  }
  // The same with another handle as its result: c.make<tt::Module>(tt_nn_relu, nullptr).
  template <class R, class F, class... A>
  R make(F f, A&&... a) {
    pointer<R> out = nullptr;
    call(f, expand(a)..., std::make_tuple(&out));
    return R(out);
  }
  template <class F, class... A>
  std::pair<Tensor, Tensor> two(F f, A&&... a) {
    tt_tensor *first = nullptr, *second = nullptr;
    call(f, expand(a)..., std::make_tuple(&first, &second));
    return {Tensor(first), Tensor(second)};
  }

  // ---- what is not of that form ----
  template <class T>
  Tensor tensor(const std::vector<T>& data, tt_dtype dtype, const shape& s) {
    return (*this)(tt_tensor_from_data, data.data(), dtype, s);
  }
  Tensor operator()(const Module& m, const Tensor& x) { return (*this)(tt_module_call, m, x); }
  Tensor operator()(const Module& m, const list& in) {
    tt_tensor* out = nullptr;
    int64_t n = 0, n_in = int64_t(in.tensors.size());
    check(tt_module_forward(c_, m.get(), in.tensors.data(), n_in, &out, 1, &n));
    return Tensor(out);
  }
  std::vector<Tensor> parameters(const Module& m) {
    StateDict d = make<StateDict>(tt_module_named_parameters, m);
    std::vector<Tensor> out;
    for (int64_t i = 0; i < tt_state_dict_size(d.get()); i++)
      out.push_back((*this)(tt_state_dict_get, d, i));
    return out;
  }
  // A Sequential of modules.
  Module sequential(std::initializer_list<Module> layers) {
    Module net = make<Module>(tt_nn_sequential);
    for (const Module& m : layers) run(tt_module_append, net, m);
    return net;
  }
  double item(const Tensor& t) {
    double v = 0;
    check(tt_item_f64(c_, t.get(), &v));
    return v;
  }
  template <class T>
  std::vector<T> read(const Tensor& t) {
    std::vector<T> v(size_t(tt_tensor_numel(t.get())));
    check(tt_tensor_read(c_, t.get(), v.data(), int64_t(v.size() * sizeof(T))));
    return v;
  }
  // Records what f computes of the inputs; f returns the list of the graph's outputs.
  template <class F>
  Graph capture(const list& inputs, F f) {
    run(tt_capture_begin, inputs, nullptr);
    try {
      return make<Graph>(tt_capture_end, list(f()));
    } catch (...) {
      tt_capture_drop(c_);
      throw;
    }
  }
  void check(tt_status s) const {
    if (s == TT_OK) return;
    const tt_error* e = tt_ctx_error(c_);
    throw Error(s, e->message, e->cause ? e->cause->message : "");
  }
  static Runtime new_runtime(const tt_runtime_opts* opts) {
    tt_runtime* rt = nullptr;
    started(tt_runtime_new(opts, &rt));
    return Runtime(rt);
  }

 private:
  template <class R>
  using pointer = decltype(std::declval<R>().get());

  template <class T, void (*retain)(T*), void (*release)(T*)>
  static auto expand(const Handle<T, retain, release>& h) { return std::make_tuple(h.get()); }
  static auto expand(const shape& s) {
    return std::make_tuple(s.sizes.data(), int64_t(s.sizes.size()));
  }
  static auto expand(const list& l) {
    return std::make_tuple(l.tensors.data(), int64_t(l.tensors.size()));
  }
  template <class T>
  static auto expand(const T& v) { return std::make_tuple(v); }
  static auto expand(std::nullptr_t) { return std::make_tuple(nullptr); }

  template <class F, class... T>
  void call(F f, T... parts) {
    check(std::apply([&](auto... all) { return f(c_, all...); }, std::tuple_cat(parts...)));
  }

  // A start that fails has no ctx whose record says why.
  static void started(tt_status s) {
    if (s != TT_OK) throw Error(s, std::string("tt cannot start: ") + tt_status_name(s));
  }

  tt_ctx* c_ = nullptr;
};

// Gradients are not recorded while one of these lives.
class NoGrad {
 public:
  explicit NoGrad(Context& c) : c_(c) { c.check(tt_set_grad_enabled(c.get(), 0, &before_)); }
  ~NoGrad() { tt_set_grad_enabled(c_.get(), before_, nullptr); }
  NoGrad(const NoGrad&) = delete;

 private:
  Context& c_;
  int32_t before_ = 1;
};

}  // namespace tt
