#include "ext/backend.h"

#include "autograd/callback_outs.h"
#include "base/finalizer.h"
#include "core/callback.h"
#include "ops/gen/ops.h"
#include "ext/mirror.h"
#include "ext/tagged_value.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

#include <string.h>

namespace TT_NS {

namespace {

// The devices of a call: that of the input tensors and that of the results, which may be given by a
// device argument.
struct Place {
  ExtDevice* on = nullptr;
  Device inputs, results;
  bool mixed = false;  // tensors of other devices take part
};

// Determines the devices. Fails for tensors of other runtimes, and for several devices unless the
// operator copies between them. CPU tensors may be numbers (0-dim) and indices.
Place place_of(const OpSchema& s, const Value* args, bool copies) {
  Place p;
  const Tensor* elsewhere = nullptr;
  each_tensor(s, args, [&](const Tensor& t, const ArgInfo& a) {
    if (t.device.type != TT_EXT) {
      const bool number = t.is_cpu() && (!t.ndim || a.type == ArgType::kOptTensorList);
      if (!number) elsewhere = &t;
      return;
    }
    ExtDevice& d = ext_of(t);
    if (!p.on) {
      p.on = &d;
      p.inputs = t.device;
    }
    if (p.on == &d) return;
    if (!copies)
      fail(TT_DEVICE, "inputs are on {} and {}: must be on one device", fmt(p.inputs),
           fmt(t.device));
    p.mixed = true;
  });
  p.mixed |= elsewhere != nullptr;
  if (p.on && elsewhere && !copies)
    fail(TT_DEVICE, "inputs are on {} and {}: must be on one device", fmt(p.inputs),
         fmt(elsewhere->device));
  p.results = p.inputs;
  for (int32_t i = 0; i < s.n_args; i++) {
    if (args[i].kind != Value::kDevice) continue;
    p.results = Unbox<Device>::get(args[i]);
    if (!p.on) {
      p.on = &ext_device(p.results.index);
      p.inputs = p.results;
    }
    p.mixed |= !(p.results == p.inputs);
  }
  return p;
}

// ---- copies of whole blocks ----

bool is_dense_like(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.dense() && same_geometry(a, b);
}

// copy_ without conversion or change of layout: to or from the CPU, or within the device.
bool copy_block(Tensor& self, const Tensor& src) {
  if (!is_dense_like(self, src) || !self.storage->writable || &self == &src) return false;
  const bool to = self.device.type == TT_EXT;
  const bool from = src.device.type == TT_EXT;
  if (to && from && (!(self.device == src.device) || may_share_memory(self, src))) return false;
  if ((!to && !self.is_cpu()) || (!from && !src.is_cpu())) return false;
  const Tensor& owner = to ? self : src;
  CopyKind direction = to ? kDeviceToDevice : kDeviceToHost;
  if (!from) direction = kHostToDevice;
  ext_copy(ext_of(owner), self.data, src.data, self.numel * self.item_size(), direction);
  self.bump_version();
  return true;
}

TensorRef clone_block(const Tensor& self, int64_t memory_format) {
  const bool keeps = memory_format == TT_PRESERVE
                         ? self.dense()
                         : memory_format == TT_CONTIGUOUS && self.contiguous();
  if (!keeps) return {};
  TensorRef out = new_strided(self.sizes(), self.strides(), self.dtype, self.device);
  ext_copy(ext_of(self), out->data, self.data, self.numel * self.item_size(), kDeviceToDevice);
  return out;
}

// ---- computed by the backend ----

// Only gradients have results that may not be needed.
bool may_leave_out(const OpSchema& s) {
  return s.internal && s.n_outs > 1 && strstr(s.name, "_backward");
}

void check_made(const Tensor& t, const Place& p, const OpSchema& s, const Value* args,
                const char* what) {
  if (!(t.device == p.results))
    fail(TT_CALLBACK, "{} returned a result on {}: must be on {}", what, fmt(t.device),
         fmt(p.results));
  each_tensor(s, args, [&](const Tensor& in, const ArgInfo&) {
    if (&in == &t)
      fail(TT_CALLBACK, "{} returned one of the arguments: results must be new tensors", what);
  });
}

// Calls the backend; returns false if it declined.
bool computed(const Place& p, Call c, const Value* args, TensorList& outs) {
  const OpSchema& s = *c.op->schema;
  if (!p.on->def.compute || s.n_outs < 0) return false;
  TaggedValues values;
  for (int32_t i = 0; i < s.n_args; i++) {
    if (args[i].kind == Value::kRng || args[i].kind == Value::kObject) return false;
    values.push_back(to_tagged(args[i]));
  }
  for (int32_t i = 0; i < s.n_args; i++)
    if (s.args[i].mutates && args[i].kind == Value::kTensor)
      check_writable(*args[i].tensor, s.args[i].name);
  CallbackName what("compute", p.on->name);
  CallbackOuts made(s.n_outs);
  bool declined = false;
  run_callback(what.text, true, [&](tt_ctx* h) {
    const tt_status status =
        p.on->def.compute(p.on->def.user, h, reinterpret_cast<const tt_op*>(c.op), values.data(),
                          values.size(), made.data(), s.n_outs);
    declined = status == TT_NOT_IMPLEMENTED;
    return declined ? tt_status(TT_OK) : status;
  });
  if (declined) return false;
  TensorList list = made.take(what.text, may_leave_out(s));
  for (const TensorRef& t : list)
    if (t) check_made(*t, p, s, args, what.text);
  outs.reserve(list.size());
  for (TensorRef& t : list) outs.push_back(t ? fresh_result(std::move(t), {}) : TensorRef());
  for (int32_t i = 0; i < s.n_args; i++)
    if (s.args[i].mutates && args[i].kind == Value::kTensor)
      const_cast<Tensor*>(args[i].tensor)->bump_version();
  return true;
}

// ---- fallback to the CPU ----

void fall_back(const Place& p, Call c, const Value* args, TensorList& outs) {
  ExtMirrors mirrors(*c.op->schema, args);
  TensorList made;
  c.op->call_boxed({mirrors.keys() & c.op->mask, c.op}, mirrors.args(), made);
  for (TensorRef& t : made) t = mirrors.home(std::move(t), p.results);
  outs.reserve(made.size());
  mirrors.write_back();
  for (TensorRef& t : made) outs.push_back(std::move(t));
}

void ext_slot(Call c, const Value* args, TensorList& outs) {
  // composite operators leave the check to the operators they call
  const bool copies = c.op == &op_copy_.info || c.op->schema->structural;
  const Place p = place_of(*c.op->schema, args, copies);
  // Its implementation is the same for every device; the operators it calls are dispatched again.
  if (c.op->schema->structural) return c.op->call_boxed({bit(kKeyCpu), c.op}, args, outs);
  MaskGuard no_grad(bit(kKeyAutograd));
  if (c.op == &op_copy_.info && copy_block(*const_cast<Tensor*>(args[0].tensor), *args[1].tensor))
    return;
  if (c.op == &op_clone.info)
    if (TensorRef t = clone_block(*args[0].tensor, args[1].i)) return outs.push_back(std::move(t));
  if (!p.mixed && computed(p, c, args, outs)) return;
  fall_back(p, c, args, outs);
}

// ---- work of composite implementations themselves ----

void copy_on_ext(Tensor& dst, const Tensor& src) {
  MaskGuard no_grad(bit(kKeyAutograd));
  op::copy_(dst, src);
}
void fill_on_ext(Tensor& dst, const Scalar& value) {
  MaskGuard no_grad(bit(kKeyAutograd));
  op::fill_(dst, value);
}

struct DropOnce {
  const ExtDef* def;
  ~DropOnce() {
    if (def) run_drop(def->drop, def->user);
  }
};

}  // namespace

bool valid_ext_name(const char* name) noexcept {
  static constexpr const char* kTaken[] = {"cpu", "cuda", "meta", "ext"};
  for (const char* taken : kTaken)
    if (!strcmp(name, taken)) return false;
  int n = 0;
  for (; name[n]; n++) {
    const bool letter = (name[n] >= 'a' && name[n] <= 'z') || name[n] == '_';
    const bool digit = name[n] >= '0' && name[n] <= '9';
    if (n == kMaxExtName - 1 || !(letter || (digit && n))) return false;
  }
  return n > 0;
}

int32_t find_ext_named(Runtime* rt, const char* name) noexcept {
  for (int32_t i = 0; i < kMaxExt; i++)
    if (ExtDevice* d = find_ext(rt, i); d && !strcmp(d->name, name)) return i;
  return -1;
}

int32_t register_ext(Runtime* rt, const ExtDef& def) {
  DropOnce drop{&def};
  auto* d = static_cast<ExtDevice*>(mem_alloc(sizeof(ExtDevice)));
  memset(static_cast<void*>(d), 0, sizeof *d);
  d->refs = 1;
  d->def = def;
  drop.def = nullptr;
  Ref<ExtDevice> ref = Ref<ExtDevice>::adopt(d);
  strncpy(d->name, def.name, kMaxExtName - 1);
  d->def.name = d->name;
  atomic_store(&ext_elements.copy, &copy_on_ext, kRelaxed);
  atomic_store(&ext_elements.fill, &fill_on_ext, kRelaxed);
  use_mode(kKeyExt, &ext_slot);
  Lock lock(*rt->mutex);
  if (find_ext_named(rt, def.name) >= 0)
    fail_arg(TT_INVALID_ARG, "name", "the runtime already has a device \"{}\"", d->name);
  int32_t i = 0;
  while (i < kMaxExt && rt->ext[i]) i++;
  if (i == kMaxExt)
    fail(TT_DEVICE, "the runtime already has {} registered devices: that is the maximum", kMaxExt);
  d->index = i;
  atomic_store(&rt->ext[i], ref.leak(), kRelease);
  return i;
}

}  // namespace TT_NS
