# macOS on Apple's 64-bit ARM, by the clang, headers and linker of zig (pip install ziglang).
# Nothing here can run its programs. 11.0 is the first version for these processors.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
execute_process(COMMAND python3 -c
  "import os, ziglang; print(os.path.dirname(ziglang.__file__), end='')"
  OUTPUT_VARIABLE tt_zig_wheel ERROR_QUIET)
find_program(TT_ZIG zig HINTS ${tt_zig_wheel} REQUIRED)
set(CMAKE_C_COMPILER ${TT_ZIG} cc -target aarch64-macos.11.0)
set(CMAKE_CXX_COMPILER ${TT_ZIG} c++ -target aarch64-macos.11.0)
set(CMAKE_C_FLAGS_INIT -g0)  # zig's default is -g
set(CMAKE_CXX_FLAGS_INIT -g0)
# Stripping a library of Apple's would break the signature that the linker gives it.
set(CMAKE_STRIP "")
set(TT_ARMV8_2 generic+v8_2a)
