# Windows x64 by Debian's mingw-w64 (POSIX threads) and wine.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(tt_triple x86_64-w64-mingw32)
set(CMAKE_C_COMPILER ${tt_triple}-gcc-posix)
set(CMAKE_CXX_COMPILER ${tt_triple}-g++-posix)
set(CMAKE_RC_COMPILER ${tt_triple}-windres)
set(CMAKE_FIND_ROOT_PATH /usr/${tt_triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR wine)
# Programs have their own copy of winpthread, so they run where no compiler is.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
# libtt.dll imports the universal C runtime, which is a part of Windows, instead of msvcrt. gcc 12
# has no option for that: its specs name the library. winpthread calls setjmp by msvcrt's name.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -dumpspecs OUTPUT_VARIABLE tt_specs)
string(REPLACE "-lmsvcrt" "-lucrt" tt_specs "${tt_specs}")
file(WRITE ${CMAKE_BINARY_DIR}/ucrt.specs "${tt_specs}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT
  "-specs=${CMAKE_BINARY_DIR}/ucrt.specs -Wl,--defsym,_setjmp=__intrinsic_setjmpex")
