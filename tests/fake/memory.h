// Memory of the fake devices: one reserved address range, accessible only during an Access.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace fake {

class Access {
 public:
  Access();
  ~Access();
  Access(const Access&) = delete;
};

void* take(int32_t device,
           size_t bytes);            // poisoned with nan bit patterns; NULL beyond the capacity
void give(int32_t device, void* p);  // aborts if memory behind the block was written
bool is_device_pointer(const void* p);
int64_t live(int32_t device);
int64_t capacity(int32_t device);
void set_capacity(int32_t device, int64_t bytes);

}  // namespace fake
