#include "core/state_dict.h"

namespace TT_NS {

int64_t StateDict::find(const char* name, int64_t hint) const {
  return positions.find(entries, name_of(name), hint);
}

void StateDict::set(const char* name, TensorRef tensor) {
  const int64_t i = find(name);
  if (i < 0) return append(name, std::move(tensor));
  entries[i].tensor = std::move(tensor);
}

void StateDict::destroy(StateDict* d) noexcept {
  d->tag = 0;
  d->~StateDict();
  mem_free(d, sizeof *d);
}

StateDictRef new_state_dict() {
  return StateDictRef::adopt(new (mem_alloc(sizeof(StateDict)))
                                 StateDict{kTagStateDict, 1, {}, {}, {}});
}

}  // namespace TT_NS
