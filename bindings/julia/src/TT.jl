"""
tt, a deep-learning core, from Julia: PyTorch's names with Julia's manners. Dims and indices count from 1, in-place functions end with `!`,
options are keyword arguments; values inside tensors (labels, argmax, index tensors) count from 0.
"""
module TT

import Libdl
import LinearAlgebra, Random, Serialization, Statistics

include("gen/c.jl")
include("gen/names.jl")

# An operator whose name Base or a standard library exports is a method of that function, if its arguments tell it from others.
for name in (EXTENDS..., OWN...)
    owner = findfirst(m -> Base.isexported(m, name), (Base, LinearAlgebra, Statistics, Random))
    owner !== nothing && name in EXTENDS && @eval import $((:Base, :LinearAlgebra, :Statistics, :Random)[owner]): $name
    (owner === nothing || owner > 1 && name in EXTENDS) && @eval export $name
end

include("library.jl")
include("errors.jl")
include("slots.jl")
include("tensor.jl")
include("gen/handles.jl")
include("convert.jl")
include("gen/ops.jl")
include("gen/elementwise.jl")
include("operators.jl")
include("array.jl")
include("index.jl")
include("arraylike.jl")
include("callbacks.jl")
include("gen/callbacks.jl")
include("autograd.jl")
include("module.jl")
include("gen/nn.jl")
include("optim.jl")
include("gen/optim.jl")
include("files.jl")
include("modes.jl")

export nn, optim, Tensor, tensor, typed, item, free!, BFloat16, ..
export backward, grad, no_grad, enable_grad, detect_anomaly, requires_grad!, retain_grad!, register_hook, register_accumulate_hook, remove!
export CustomFunction, save_for_backward, saved_tensors, manual_seed, is_contiguous
export parameters, named_parameters, named_buffers, named_children, state_dict, load_state_dict!, train!, eval!, zero_grad!, step!, add_param_group!
export register_forward_hook, register_forward_pre_hook, register_full_backward_hook, register_full_backward_pre_hook, save_file, load_file, torch_save, torch_load
export save_checkpoint, load_checkpoint!

function __init__()
    load_library()
    make_callbacks()
    start_runtime()
end

end
