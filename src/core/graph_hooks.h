// What a capture or the lowering of a graph (src/graph) does in place of parts of core.
#pragma once

#include "core/event.h"
#include "core/generator.h"

namespace TT_NS {

struct GraphHooks : CtxPart {
  // Reserves counters of a generator; reserve(g, counters) does it as ever.
  Rng (*draw)(GraphHooks&, Generator& g, uint64_t counters, Rng (*reserve)(Generator&, uint64_t));
  // Sets data and release of a new storage of s.bytes > 0 on the CPU; may fail. NULL: allocated as
  // ever.
  void (*place)(GraphHooks&, Storage& s);
};

}  // namespace TT_NS
