/* Named tensors, files, checkpoints and other libraries' tensors. */
#include "program.h"

#include <unistd.h>

static void path_of(Program* p, char* path, size_t cap, const char* name) {
  snprintf(path, cap, "%s/%s%d", p->folder, name, below(p, 3));
}

/* ---- dicts ---- */

static void use_dict(Program* p) {
  static const char* const kNames[] = {"weight", "bias", "0.weight", "x", "", "running_mean"};
  const char* name = kNames[below(p, 6)];
  tt_state_dict *d = any_dict(p), *made = NULL;
  tt_tensor *in = any_tensor(p), *t = NULL;
  const int64_t k = small_int(p);
  int64_t at;
  switch (below(p, 5)) {
    case 0: CALL(tt_state_dict_new(p->c, &made)); break;
    case 1: CALL(tt_state_dict_get(p->c, d, k, &t)); break;
    case 2: CALL(tt_state_dict_find(p->c, d, name, &at)); break;
    default: ATOMIC(tt_state_dict_set(p->c, d, name, in));
  }
  keep_tensor(p, t);
  if (made) keep_dict(p, made);
}

/* ---- files ---- */

static void use_safetensors(Program* p) {
  static const char* const kNames[] = {"a", "b", "b"};
  static const char* const kMetadata[] = {"key", "value"};
  const tt_safetensors_save_opts o = {
      .set = any(p) & 1, .metadata = kMetadata, .n_metadata = 1 + one_in(p, 2)};
  tt_tensor* tensors[3] = {any_tensor(p), any_tensor(p), any_tensor(p)};
  tt_safetensors **place = &p->files[below(p, kFiles)], *f = NULL, *old = *place;
  tt_tensor* t = NULL;
  const int64_t k = small_int(p);
  char path[128];
  path_of(p, path, sizeof path, "safe");
  switch (below(p, 5)) {
    case 0:
    case 1: CALL(tt_safetensors_save(p->c, path, kNames, tensors, 1 + below(p, 3), &o)); break;
    case 2: CALL(tt_safetensors_open(p->c, path, &f)); break;
    case 3: CALL(tt_safetensors_map(p->c, path, &f)); break;
    default: CALL(tt_safetensors_get(p->c, old, k, &t));
  }
  keep_tensor(p, t);
  if (!f) return;
  if (p->nested && old) {
    tt_safetensors_release(f);
    return;
  }
  *place = f;
  tt_safetensors_release(old);
}
static void use_torch_files(Program* p) {
  tt_state_dict *d = any_dict(p), *made = NULL;
  char path[128];
  path_of(p, path, sizeof path, "torch");
  if (one_in(p, 2)) {
    CALL(tt_torch_save(p->c, path, d, one_in(p, 6) ? "{\"list\":[{\"tensor\":\"x\"}]}" : NULL));
    return;
  }
  CALL(tt_torch_load(p->c, path, &made));
  if (made) keep_dict(p, made);
}
/* A scheduler holds an optimizer, which must be the one of the checkpoint: any of them will do. */
static void use_checkpoint(Program* p) {
  tt_checkpoint parts = {.struct_size = sizeof parts};
  char path[128];
  path_of(p, path, sizeof path, "checkpoint");
  if (one_in(p, 2)) parts.module = any_module(p);
  if (one_in(p, 2)) parts.optimizer = any_optimizer(p);
  if (one_in(p, 3)) parts.scheduler = p->schedulers[below(p, kSchedulers)];
  if (one_in(p, 3)) parts.generator = any_generator(p);
  if (one_in(p, 3)) parts.extra = any_dict(p);
  if (one_in(p, 2)) CALL(tt_checkpoint_save(p->c, path, &parts));
  else ATOMIC(tt_checkpoint_load(p->c, path, &parts));
}

/* ---- DLPack ---- */

static void use_capsule(Program* p) {
  const int i = below(p, kCapsules);
  const int32_t major = one_in(p, 40) ? (int32_t)small_int(p) : below(p, 2);
  tt_tensor *t = any_tensor(p), *made = NULL;
  void* capsule = NULL;
  if (!p->capsules[i]) {
    CALL(tt_tensor_to_dlpack(p->c, t, major, &capsule));
    if (!capsule) return;
    p->capsules[i] = capsule;
    p->capsule_major[i] = major;
    return;
  }
  if (p->nested) return; /* taking ownership at the same time would be an error of the program */
  CALL(tt_tensor_from_dlpack(p->c, p->capsules[i], p->capsule_major[i], &made));
  if (!made) return;
  p->capsules[i] = NULL;
  keep_tensor(p, made);
}

void act_state(Program* p) {
  switch (below(p, 8)) {
    case 0:
    case 1:
    case 2: return use_dict(p);
    case 3: return use_safetensors(p);
    case 4: return use_torch_files(p);
    case 5: return use_checkpoint(p);
    default: return use_capsule(p);
  }
}
