set(tt_triple arm-linux-gnueabihf)
set(tt_processor armv7l)
set(tt_qemu qemu-arm-static)
include(${CMAKE_CURRENT_LIST_DIR}/gnu-linux.cmake)
