// Lowering runs the implementation of each node twice, with kernels recorded instead of run: once
// to see how much memory it takes from when to when, once to record launches with addresses in the
// arena.
#pragma once

#include "graph/plan/bands.h"
#include "graph/plan/device_plan.h"
#include "graph/hooked_ctx.h"
#include "graph/plan/image_layouts.h"
#include "graph/plan/plan.h"
#include "graph/plan/prepack.h"
#include "graph/plan/share_layouts.h"

namespace TT_NS {

// Rngs of draws have seeds that name them until a run fills in the drawn one.
inline constexpr uint64_t kDrawSeed = 0x7474647261770000u;

// What the first run learns of layouts for the second.
struct Layouts {
  SharedLayouts shared;
  ImageLayouts images;
  void second_run() {
    shared.second_run();
    images.second_run();
  }
};

class Lowering : public GraphHooks {
 public:
  Lowering(const Graph& g, Plan& p, Layouts& layouts, bool final);
  ~Lowering();
  Lowering(const Lowering&) = delete;
  void run();

 private:
  struct Observer : WorkObserver {
    Lowering* lowering;
  };

  static Rng on_draw(GraphHooks& h, Generator& g, uint64_t counters, Rng (*)(Generator&, uint64_t));
  static void on_place(GraphHooks& h, Storage& s);
  static void on_release(Storage* s) noexcept;
  static void on_place_on_device(GraphHooks& h, Storage& s);
  static void on_release_on_device(Storage* s) noexcept;
  static void on_workspace(GraphHooks& h, Device device, int64_t bytes);
  static void on_device_launch(GraphHooks& h, const Kernel& k, Device device, const void* plan);
  static void on_device_copy(GraphHooks& h, char* dst, Device to, const char* src, Device from,
                             int64_t bytes);
  static int64_t* on_check_place(GraphHooks& h, Device device);
  static void on_device_check(GraphHooks& h, Device device, int64_t* place, DeviceCheck&& check);
  static const DeviceHooks kDeviceHooks;
  static int32_t on_launch(WorkObserver& w, const Kernel& k, const void* plan, int64_t units,
                           int64_t grain);
  static void on_read(WorkObserver& w, const Tensor& t);
  static void on_write(WorkObserver& w, const Tensor& t);
  static bool on_check(WorkObserver& w, const Tensor& found, const DeviceCheck& check);
  static void on_call(WorkObserver& w, Object& object, HostFn fn, const Tensor& t);

  void prepare_storages();
  void find_last_uses();
  void find_direct();
  TensorRef tensor_of(int32_t value);
  void run_node(int32_t i);
  void run_host_node(int32_t i);
  char* take_on_device(PlanDevice& d, int64_t bytes);
  void take_draw(PlanStep& step, const Kernel& k);
  DeviceCheck named(const DeviceCheck& check) const;
  void take_results(int32_t i, const TensorList& outs);
  void add_draws_before(int32_t node);
  int32_t add_draw(Ref<Generator> generator, uint64_t counters);
  void end_of_storages(int32_t node);
  char* address_of(int32_t value) const;
  void keep_addresses();
  void note_storage(int32_t storage);
  void keep_slots();
  void new_step(const Kernel* k = nullptr, const void* plan = nullptr, int64_t units = 0);
  char* take_blob(int64_t bytes);

  const Graph& g_;
  Plan& p_;
  SharedLayouts& shared_;
  ImageLayouts& images_;
  Prepacking prepacking_;
  BandLives lives_;
  const bool final_;  // the second run
  Observer observer_;
  int64_t id_;
  int64_t time_ = 0;
  int64_t n_placed_ = 0;
  int64_t n_placed_on_device_ = 0;
  int64_t n_device_checks_ = 0;
  char* workspace_ = nullptr;  // on a device, of the next launch
  int64_t blob_used_ = 0;
  int32_t node_ = 0;
  int64_t next_draw_ = 0;             // of the graph
  SmallVec<int32_t, 1> draws_;        // of the graph -> of the plan
  SmallVec<TensorRef, 16> storages_;  // bytes of each storage that exists
  SmallVec<int64_t, 16> begins_;      // of each storage: where these begin
  SmallVec<int64_t, 16> placed_;      // of each storage, in the first run: its placement, or -1
  SmallVec<int32_t, 16> last_use_;    // the node that reads or writes a storage last
  SmallVec<int32_t, 16> direct_;      // of each storage: the storage that it is made in, or -1
  SmallVec<bool, 16> is_left_out_;    // of each node

  HookedCtx ctx_;
};

}  // namespace TT_NS
