// Side streams: the Stream key and its boxed handler. Operators on tensors of CUDA devices wait for
// the streams that wrote their arguments, and mark the memory that they use. Costs nothing until a
// ctx sets a side stream: from then on the key is in the ctx's include mask, and in the tensors
// that the stream wrote, for other ctxs.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

// The operators of the ctx compute on the stream from now on.
void use_stream(Ctx& c, DeviceStream& stream);

}  // namespace TT_NS
