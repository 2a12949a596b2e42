# Runs on an x86-64 kernel without an emulator, by the loader of Debian's cross libraries.
set(tt_triple i686-linux-gnu)
set(tt_processor i686)
include(${CMAKE_CURRENT_LIST_DIR}/gnu-linux.cmake)
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/${tt_triple}/lib/ld-linux.so.2 --library-path
  /usr/${tt_triple}/lib)
