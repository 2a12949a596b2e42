/* libtt_fake.so: a device over host memory. It is loaded like libtt_cuda.so (tt_load_cuda) and
   runs the baseline CPU kernels. Its memory is accessible only while one of its functions runs:
   host code that dereferences a device pointer crashes at once. Tests find these functions by
   dlsym. */
#ifndef TT_FAKE_H
#define TT_FAKE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TT_FAKE_DEVICES = 2 };
int64_t tt_fake_live(int32_t device); /* bytes allocated by raw_alloc */
void tt_fake_capacity(int32_t device,
                      int64_t bytes); /* capacity, beyond which raw_alloc fails; 2 GiB at first */
int64_t tt_fake_launches(void);       /* kernels run so far */
int64_t tt_fake_syncs(void);          /* times that the host waited for a device so far */
/* When work runs. 0: at once; 1: when the host waits for it; else in an order that this number
   picks among those that the streams allow. */
void tt_fake_late(uint64_t order);
int64_t tt_fake_graphs(void); /* launches of graphs so far */
/* Whether the allocator cuts blocks out of larger ones, as on a GPU; at first it does not, so that
   the fake sees the end of each block. Not while there are blocks. */
void tt_fake_cut_blocks(int32_t cut);
/* The n-th launch from now fails with this status, at once or, if late, at the next
   synchronisation or copy to the host. */
void tt_fake_fail(int64_t n, int32_t status, int32_t late);
/* The build id that the library claims; 0: its own. */
void tt_fake_claim(uint64_t build_id);

#ifdef __cplusplus
}
#endif
#endif
