# x86-64 Linux with musl and libc++, by the clang of zig (pip install ziglang). Programs are static
# and run as they are.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
find_program(TT_ZIG zig REQUIRED)
set(CMAKE_C_COMPILER ${TT_ZIG} cc -target x86_64-linux-musl)
set(CMAKE_CXX_COMPILER ${TT_ZIG} c++ -target x86_64-linux-musl)
set(CMAKE_CROSSCOMPILING_EMULATOR env)
