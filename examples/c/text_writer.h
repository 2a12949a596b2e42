/* Writes with char_lm's GPT one symbol at a time: keys and values of earlier symbols stay in a
   cache, and the step is a compiled function, recorded at the first symbol. */
#ifndef TEXT_WRITER_H
#define TEXT_WRITER_H

#include "tt.h"

typedef struct writer writer;

/* For a network with these sizes on that device. NULL, with the error in the ctx. The network must
   live on. */
writer* writer_new(tt_ctx* c, tt_module* gpt, tt_device device, long layers, long width, long heads,
                   long context);
void writer_free(writer* w);
/* *scores (1, vocabulary) = those of the symbol that follows; the open scope of the ctx owns them.
   Symbols count from the first call or the last writer_restart; there is room for `context`. */
tt_status writer_next(tt_ctx* c, writer* w, int64_t symbol, tt_tensor** scores);
void writer_restart(writer* w);
/* How many symbols it holds, and how many steps were replayed. */
long writer_length(const writer* w);
long writer_replays(tt_ctx* c, const writer* w);

#endif
