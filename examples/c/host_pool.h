/* A host's own threads: a small pool that runs ranges of a loop. */
#ifndef HOST_POOL_H
#define HOST_POOL_H

#include "tt.h"

typedef struct host_pool host_pool;
host_pool* host_pool_new(int workers); /* NULL: no memory or no threads */
void host_pool_free(host_pool* p);
tt_executor host_pool_executor(host_pool* p);
long host_pool_loops(const host_pool* p); /* how many loops it has run for tt */

#endif
