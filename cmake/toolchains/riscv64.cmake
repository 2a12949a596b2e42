set(tt_triple riscv64-linux-gnu)
set(tt_processor riscv64)
set(tt_qemu qemu-riscv64-static)
include(${CMAKE_CURRENT_LIST_DIR}/gnu-linux.cmake)
