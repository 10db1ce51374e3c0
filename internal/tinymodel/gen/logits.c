// logits computes a prompt with llama.cpp's library: logits MODEL PROMPT STEPS OUT.
// PROMPT is ids with commas between. OUT gets the logits of every token of it and
// then those of as many tokens as STEPS says, each the best one of the row before,
// as rows of float32. Keys and values are float32. Build it as resave.c.
#include "llama.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void quiet(enum ggml_log_level level, const char *text, void *user) {
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
    (void)user;
}

static int row(struct llama_context *ctx, llama_token id, int vocab, FILE *out) {
    if (llama_decode(ctx, llama_batch_get_one(&id, 1))) {
        fprintf(stderr, "llama_decode failed\n");
        exit(1);
    }
    const float *logits = llama_get_logits_ith(ctx, -1);
    fwrite(logits, sizeof(float), vocab, out);
    int best = 0;
    for (int i = 1; i < vocab; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: logits MODEL PROMPT STEPS OUT\n");
        return 2;
    }
    llama_log_set(quiet, NULL);
    llama_backend_init();
    struct llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = 0;
    struct llama_model *model = llama_model_load_from_file(argv[1], mp);
    if (!model)
        return 1;
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 512;
    cp.n_batch = cp.n_ubatch = 1;
    cp.type_k = cp.type_v = GGML_TYPE_F32;
    cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    cp.n_threads = cp.n_threads_batch = 1;
    struct llama_context *ctx = llama_init_from_model(model, cp);
    FILE *out = fopen(argv[4], "wb");
    if (!ctx || !out)
        return 1;
    int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model)), best = 0;
    for (char *s = strtok(argv[2], ","); s; s = strtok(NULL, ","))
        best = row(ctx, atoi(s), vocab, out);
    for (int i = atoi(argv[3]); i > 0; i--)
        best = row(ctx, best, vocab, out);
    fclose(out);
    return 0;
}
