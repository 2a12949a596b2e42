set(tt_triple aarch64-linux-gnu)
set(tt_processor aarch64)
set(tt_qemu qemu-aarch64-static)
include(${CMAKE_CURRENT_LIST_DIR}/gnu-linux.cmake)
