# Event files of TensorBoard.

const EVENT_FILES = Threads.Atomic{Int}(0)

"""
    w = TT.SummaryWriter(log_dir)

Writes values to an event file in a folder, for TensorBoard, as `torch.utils.tensorboard` does. Each
of `TT.add_scalar(w, tag, x, step)`, `TT.add_text`, `TT.add_histogram(w, tag, values, step)` and
`TT.add_image(w, tag, image, step)`, which takes (C, H, W) of uint8 or of numbers in [0, 1], appends
one value under a tag. The step may be left out.
"""
struct SummaryWriter
    path::String
    function SummaryWriter(log_dir::AbstractString)
        mkpath(log_dir)
        number = Threads.atomic_add!(EVENT_FILES, 1)
        seconds = lpad(Base.floor(Int, time()), 10, '0')
        file = "events.out.tfevents.$seconds.tt.$(getpid()).$number"
        return new(joinpath(log_dir, file))
    end
end

const Step = Union{Integer, Nothing}
step_number(step::Step) = step === nothing ? -1 : step
"Appends a number, as Float32, under a tag, at a step."
function add_scalar(w::SummaryWriter, tag::AbstractString, x, step::Step=nothing)
    number = x isa Tensor ? item(x) : x
    check(C.tt_tensorboard_add_scalar(ctx(), w.path, tag, number, step_number(step)))
end
"Appends a text, which TensorBoard renders as Markdown."
add_text(w::SummaryWriter, tag::AbstractString, text::AbstractString, step::Step=nothing) =
    check(C.tt_tensorboard_add_text(ctx(), w.path, tag, text, step_number(step)))
"Appends a histogram of values in TensorFlow's bins, whose edges are powers of 1.1."
function add_histogram(w::SummaryWriter, tag::AbstractString, values, step::Step=nothing)
    t = values isa Tensor ? values : tensor(values)
    check(C.tt_tensorboard_add_histogram(ctx(), w.path, tag, t, step_number(step)))
end
"Appends an image (C, H, W) of 1, 3 or 4 channels: uint8, or numbers in [0, 1]."
add_image(w::SummaryWriter, tag::AbstractString, image::Tensor, step::Step=nothing) =
    check(C.tt_tensorboard_add_image(ctx(), w.path, tag, image, step_number(step)))
