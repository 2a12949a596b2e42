#!/usr/bin/env bash
# run.sh [OUT]: what a session with a GPU does, in eight minutes: the table of ratios to PyTorch,
# conformance, sanitizers, Python. `./dev gpu pack` stages it with everything that it needs in .gpu.
# Each step has a time limit and a log; a step that cannot run says why, and the next one follows.
# What is most in doubt comes first: the rows of first.txt, which no run has measured as they are,
# and under the sanitizers the kernels that have not been there. After each step OUT, by default
# .gpu/out, has the report so far (report.md) and the logs (logs.tgz): of a lent machine few files
# come back, also if it is taken away in the middle.
#   TT_GPU_SECONDS    when no further step begins, and the last one ends (480)
#   TT_GPU_STEPS      the names of the only steps to take
#   TT_GPU_PROBE=no   lib/libtt_cuda.so is the emulation, which has no ceilings (./dev gpu rehearse)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
given=${1:-${OUT:-$here/out}}
out=$here/logs
rm -rf "$out"
mkdir -p "$out/failed" "$given"
# NVIDIA's libraries, which tt opens by name: those of PyTorch, then those of the toolkit
nvidia=$(python3 -c 'import glob, os, sys
found = [p for s in sys.path for p in glob.glob(s + "/nvidia/**/lib*.so.*", recursive=True)]
print(":".join(sorted({os.path.dirname(p) for p in found})))' 2>/dev/null)
export LD_LIBRARY_PATH=$here/lib:$nvidia:/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-}
export TT_GPU_FIRST=$here/first.txt
export TT_TEST_DEVICE=cuda TT_TEST_ROOT=$here TT_TEST_CUDA_LIBRARY=$here/lib/libtt_cuda.so
: >"$out/steps.txt"

deliver() {  # what is known so far
  python3 "$here/report.py" "$out" >"$given/report.md"
  tar -C "$out" -czf "$given/logs.tgz" .
}
note() {  # STEP WORDS
  printf '%s\t%s\n' "$1" "$2" | tee -a "$out/steps.txt"
}
step() {  # NAME SECONDS COMMAND…
  local name=$1 limit=$2 start=$SECONDS left=$((${TT_GPU_SECONDS:-480} - SECONDS)) status
  shift 2
  case " ${TT_GPU_STEPS:-$name} " in *" $name "*) ;; *) return 0 ;; esac
  if [ "$left" -lt 5 ]; then
    note "$name" "not run: no time is left"
    return 3
  fi
  if [ "$limit" -gt "$left" ]; then limit=$left; fi
  timeout "$limit" "$@" >"$out/$name.log" 2>&1
  status=$?
  case $status in
    0) note "$name" "passed in $((SECONDS - start)) s" ;;
    3) note "$name" "not run: $(tail -n 1 "$out/$name.log")" ;;
    124) note "$name" "stopped after $limit s" ;;
    *) note "$name" "FAILED ($status): $(tail -n 1 "$out/$name.log")" ;;
  esac
  # measurements among what it has printed
  if ! grep '^{' "$out/$name.log" >"$out/$name.json"; then rm "$out/$name.json"; fi
  deliver
  return "$status"
}
equal_training() {  # two trainings give the same bits
  local run
  for run in 1 2; do
    "$here/bin/train_digits" --device "$TT_TEST_DEVICE" --data "$here/data/digits.csv" \
      --svg "$out/loss.svg" --epochs 2 --logits "$out/logits$run.bin" || return
  done
  cmp "$out/logits1.bin" "$out/logits2.bin"
}
one_sanitized() {  # TOOL OPERATOR
  local log=$out/failed/$1_$2.log
  # its loops over shared memory take racecheck minutes
  if [ "$2" = linalg_svd ] && [ "$1" != memcheck ]; then export TT_TEST_SAMPLES=2; fi
  timeout 50 compute-sanitizer --tool "$1" --error-exitcode 1 --print-limit 5 \
    "$here/bin/op_table_test" "$2" >"$log" 2>&1 && rm "$log" && return
  echo "$2: $(grep -m 1 '^========= [A-Z].*\(Invalid\|Error\|error\|hazard\|Barrier\)' "$log")"
  return 1
}
sanitizer() {  # TOOL OPERATOR…: several operators at once
  local tool=$1
  shift
  command -v compute-sanitizer >/dev/null || {
    echo "compute-sanitizer is not installed"
    return 3
  }
  printf '%s\n' "$@" | xargs -P "$(nproc)" -I {} bash -c "one_sanitized $tool {}"
}
peer() {
  python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || {
    echo "PyTorch with CUDA is not installed"
    return 3
  }
  python3 "$here/torch_bench.py" "$@"
}
wgmma() {  # products of a warpgroup, and the gradients of attention by them: off until they ran
  [ -x "$here/bin/wgmma_check" ] || {
    echo "there is no wgmma_check here"
    return 3
  }
  "$here/bin/wgmma_check" && "$here/bin/sdpa_check" own
}
sdpa() {  # attention by cuDNN, also in any order, beside the own kernels and the definition
  [ -x "$here/bin/sdpa_check" ] || {
    echo "there is no sdpa_check here"
    return 3
  }
  "$here/bin/sdpa_check"
}
python_cases() {  # of the repository around .gpu
  [ -d "$here/../bindings/python" ] || {
    echo "there is no bindings/python beside .gpu"
    return 3
  }
  TT_LIBRARY=$here/lib/libtt.so.0 python3 "$here/python_cuda.py"
}
kernel_times() {  # the kernels of a network's steps, by their time
  command -v ncu >/dev/null || {
    echo "ncu is not installed"
    return 3
  }
  ncu --csv --print-units base --clock-control none --kill yes \
    --metrics gpu__time_duration.sum -s 400 -c 400 "$here/bin/steps" - 1 gpt |
    python3 "$here/kernel_times.py"
}
export -f equal_training one_sanitized sanitizer peer wgmma sdpa python_cases kernel_times
export here out

# those whose kernels no sanitizer has seen as they are, then those that every family has
operators=(layer_norm group_norm rms_norm batch_norm cross_entropy argmax var logsumexp
  linalg_vector_norm lstm gru linalg_cholesky linalg_lu_factor linalg_solve cdist grid_sample)
operators+=(add sum softmax cumsum sort matmul index_put conv2d scaled_dot_product_attention
  linalg_svd)
# Times of the host are of one processor, tt's and PyTorch's.
pin=()
if command -v taskset >/dev/null; then pin=(taskset -c "$(taskset -pc $$ | sed 's/.*[-, ]//')"); fi
if [ "${TT_GPU_PROBE:-yes}" = yes ] && ! step probe 60 "$here/bin/probe"; then
  note all "nothing else can run without a device"
else
  step wgmma 40 bash -c wgmma
  step bench 90 "${pin[@]}" "$here/bin/bench" - "${TT_GPU_SHARE:-1}"
  step torch 90 "${pin[@]}" bash -c 'peer rows'
  step conformance 150 python3 "$here/conformance.py" "$here" "$out" 130
  # what libraries serve, by the own kernels
  step own_kernels 60 env TT_TEST_OWN_KERNELS=1 "$here/bin/op_table_test" matmul linear addmm \
    baddbmm conv1d conv2d conv3d conv_transpose2d scaled_dot_product_attention fft_fft fft_rfft \
    fft_irfft linalg_cholesky linalg_qr linalg_eigh linalg_solve
  # of those that failed, the first ones
  mapfile -t broken < <(sed -n '/_test/d;s/\t(.*//p' "$out/operators.txt" | head -n 12)
  step racecheck 75 bash -c "sanitizer racecheck ${operators[*]}"
  step memcheck 75 bash -c "sanitizer memcheck ${operators[*]} ${broken[*]}"
  step training 60 bash -c equal_training
  step steps 60 "$here/bin/steps" - "${TT_GPU_SHARE:-1}" ${TT_GPU_NETS:-}
  step torch_steps 60 bash -c 'peer steps'
  step sdpa 60 bash -c sdpa
  step python 120 bash -c python_cases
  step synccheck 60 bash -c "sanitizer synccheck ${operators[*]}"
  step kernel_times 40 bash -c kernel_times
  step torch_compiled 150 bash -c 'peer compiled'
fi
deliver
cat "$given/report.md"
! grep -q FAILED "$out/steps.txt"
