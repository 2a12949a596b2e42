"""
tt, a deep-learning core, from Julia. Operators, layers and optimizers have PyTorch's names and are
used as `TT.relu`, `nn.Linear`, `optim.Adam`; functions of Base keep Base's contracts for a
`Tensor`. Dims and indices count from 1, in-place functions end with `!`, options are keyword
arguments. Values inside tensors (labels, index tensors) count from 0.
"""
module TT

# Julia 1.5 keeps no machine code of a package: each process compiles what it runs. At this level
# that takes half the time; `free!(a + b)` is as fast, `add!(a, b)` 5 ns slower.
Base.Experimental.@optlevel 1

import Libdl
import LinearAlgebra, Random, Serialization, Statistics

include("gen/c.jl")
include("gen/names.jl")

# An operator is a function of TT, also where Base has one of its name: TT.sort is PyTorch's sort,
# and what Base.sort does to a Tensor is in arraylike.jl. In this module `sort` is TT.sort.
for name in OPERATORS
    @eval function $name end
end

include("library.jl")
include("errors.jl")
include("context.jl")
include("tensor.jl")
include("gen/handles.jl")
include("convert.jl")
include("gen/ops.jl")
include("gen/elementwise.jl")
include("operators.jl")
include("array.jl")
include("index.jl")
include("arraylike.jl")
include("factors.jl")
include("callbacks.jl")
include("gen/callbacks.jl")
include("autograd.jl")
include("module.jl")
include("gen/nn.jl")
include("optim.jl")
include("gen/optim.jl")
include("init.jl")
include("sequence.jl")
include("utils.jl")
include("gradcheck.jl")
include("parametrize.jl")
include("prune.jl")
include("files.jl")
include("contents.jl")
include("modes.jl")
include("transform.jl")
include("graph.jl")
include("data.jl")
include("distributed.jl")
include("streams.jl")
include("tensorboard.jl")

export Tensor, tensor, typed, free!, backward, no_grad, nn, optim

# What else is for users. `public` is a keyword from Julia 1.11 on.
const PUBLIC = (OPERATORS..., ALIASES...,
    :.., :BFloat16, :Device, :Error, :CustomFunction, :CancelToken, :Compiled, :Generator,
    :Graph, :Module, :Optimizer, :Plan, :Value, :Dataset, :Ddp, :Event, :GradScaler, :Group,
    :Loader, :Work,
    :all_gather!, :all_reduce!, :all_to_all!, :barrier, :compile, :compile_info, :reset!,
    :capture, :export_c, :export_onnx, :graphviz,
    :load_graph, :load_onnx, :optimize, :quantize, :run!,
    :save_graph,
    :broadcast!, :gather!, :group_rank, :group_size, :no_sync, :prepare_forward!, :recv!, :reduce!,
    :reduce_scatter!, :scatter!, :send, :split_group,
    :Sampler, :Scheduler, :StateDict, :Stream, :can_access_peer, :copy_non_blocking!,
    :current_stream, :default_stream, :device_index, :device_memory, :device_properties,
    :elapsed_ms, :is_done, :is_pinned, :pin_memory, :record!, :reset_peak_memory!, :set_stream!,
    :stream_ptr, :wait_event!, :wait_stream!, :with_stream,
    :SafeTensors, :accumulated_grad, first.(BESSEL)..., first.(POLYNOMIALS)...,
    :AveragedModel, :PackedSequence, :SummaryWriter, :pack_padded_sequence, :pack_sequence,
    :pad_packed_sequence, :pad_sequence, :unpack_sequence, :unpad_sequence, :spherical_bessel_j0,
    :add_histogram, :add_image, :add_scalar, :add_text, :add_param_group!, :attend,
    :build_info, :call_op, :cancel, :clip_grad_norm!, :clip_grad_value!, :custom_module,
    :detect_anomaly, :device,
    :enable_grad, :eval!, :freeze!, :from_dlpack, :get_state, :get_submodule, :get_tensor, :grad,
    :grad_fn, :gradient, :instruction_set, :is_contiguous, :is_frozen, :is_freed, :is_training,
    :item, :keep!, :live, :load_checkpoint!, :load_cuda, :load_file, :load_state_dict!, :log_prob,
    :manual_seed, :memory, :metadata, :module_type, :modules, :named_buffers,
    :named_children, :named_modules, :named_parameters,
    :next_functions, :num_threads, :op_schema, :parameters, :predict, :profile,
    :profile_events, :region,
    :autocast, :dual_level, :functional_call, :hessian, :hvp, :jacobian, :jvp, :linearize,
    :make_dual, :stack_module_state, :unpack_dual, :unscale_grads!, :vjp, :vmap,
    :checkpoint_sequential, :clip_grads_with_norm!, :fork_rng, :fuse_conv_bn_eval,
    :fuse_conv_bn_weights, :fuse_linear_bn_eval, :gumbel_softmax, :generate_square_subsequent_mask,
    :get_total_norm, :gradcheck, :gradgradcheck, :parameters_to_vector, :pca_lowrank, :random_split,
    :save_on_cpu, :svd_lowrank, :vector_to_parameters!,
    :register_accumulate_hook, :register_backend, :register_buffer!, :register_forward_hook,
    :register_forward_pre_hook, :register_full_backward_hook, :register_full_backward_pre_hook,
    :register_hook, :register_module!, :register_op, :register_parameter!, :register_prehook,
    :remove!, :requires_grad!, :retain_grad!, :same_storage, :same_tensor, :save_checkpoint,
    :save_file, :save_for_backward, :saved_tensors, :saved_tensors_hooks, :scope,
    :set_memory_limit!, :set_num_threads!,
    :set_poll!, :set_state!, :state_dict, :step!, :structure, :synchronize, :to!, :to_dlpack,
    :contents, :torch_load, :torch_save, :csv_load, :idx_load, :npy_load, :npz_load, :get_scale,
    :scale,
    :found_inf, :unscale!, :update!, :update_bn!, :update_parameters!, :trace, :train!, :trim,
    :with_cancel, :withgradient, :zero_grad!)
VERSION >= v"1.11" && eval(Expr(:public, PUBLIC...))

function __init__()
    load_library()
    start_runtime()
    Base.Experimental.register_error_hint(hint_at_tensors, MethodError)
end


# Most of what a program runs up to its first gradient, inferred when the package is precompiled.
for T in (Float32, Float64), N in 1:2
    precompile(tensor, (Array{T, N},))
    precompile(Tensor, (Array{T, N},))
    precompile(copied, (Array{T, N}, Nothing))
end
for (f, types) in ((__init__, ()), (load_library, ()), (start_runtime, ()), (backward, (Tensor,)),
                   (Base.sum, (Tensor,)), (Base.getproperty, (Tensor, Symbol)),
                   (mul, (Tensor, Tensor)), (Base.:*, (Tensor, Tensor)), (Base.:^, (Tensor, Int)),
                   (requires_grad!, (Tensor,)), (accumulated_grad, (Tensor,)), (relieve, ()),
                   (row_major, (Array,)), (empty_slot!, (Slot,)), (end_ctx, (Ctx,)),
                   (Base.show, (IO, Tensor)))
    precompile(f, types)
end

end
