/* libtt_fake.so: a device over host memory. It is loaded like libtt_cuda.so (tt_load_cuda) and runs
   the baseline CPU kernels. Its memory can be touched only while one of its functions runs: host
   code that follows a device pointer dies at once. These functions steer it; a test finds them by
   dlsym. */
#ifndef TT_FAKE_H
#define TT_FAKE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TT_FAKE_DEVICES = 2 };
int64_t tt_fake_live(int32_t device);                 /* bytes that raw_alloc has given out */
void tt_fake_capacity(int32_t device, int64_t bytes); /* raw_alloc fails beyond; at first 2 GiB */
int64_t tt_fake_launches(void);                       /* kernels run so far */
/* The n-th launch from now fails with status: at once, or late: reported by the next
 * synchronisation or copy to the host. */
void tt_fake_fail(int64_t n, int32_t status, int32_t late);
/* The build id that the library claims; 0: its own. */
void tt_fake_claim(uint64_t build_id);

#ifdef __cplusplus
}
#endif
#endif
