# x86-64 Linux with musl and libc++, by the clang of zig (pip install ziglang). Programs need the
# loader of Debian's package musl.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
execute_process(COMMAND python3 -c
  "import os, ziglang; print(os.path.dirname(ziglang.__file__), end='')"
  OUTPUT_VARIABLE tt_zig_wheel ERROR_QUIET)
find_program(TT_ZIG zig HINTS ${tt_zig_wheel} REQUIRED)
set(CMAKE_C_COMPILER ${TT_ZIG} cc -target x86_64-linux-musl)
set(CMAKE_CXX_COMPILER ${TT_ZIG} c++ -target x86_64-linux-musl)
set(CMAKE_C_FLAGS_INIT -g0)  # zig's default is -g: libtt.a would have 98 MB
set(CMAKE_CXX_FLAGS_INIT -g0)
set(CMAKE_CROSSCOMPILING_EMULATOR env)
