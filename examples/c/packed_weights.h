/* Packs the weights of embeddings and linear layers of a trained network in blocks of 32 numbers
   with a scale: q8_0, 8.5 bits a number, or q4_0, 4.5 bits. */
#ifndef PACKED_WEIGHTS_H
#define PACKED_WEIGHTS_H

#include "tt.h"

/* Replaces the child `name` of parent, an Embedding or a Linear whose rows are whole blocks, by a
   module that computes with its packed weight. format: a tt_blockformat. */
tt_status pack_child(tt_ctx* c, tt_module* parent, const char* name, int32_t format);

#endif
