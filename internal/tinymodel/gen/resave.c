// resave writes a GGUF file as llama.cpp's library saves a model that it has
// loaded: resave FROM TO. Build it against a checkout of llama.cpp:
//   cc -I$LLAMA/include -I$LLAMA/ggml/include resave.c -o resave -L$LLAMA/build/bin -lllama -lggml -lggml-base
#include "llama.h"
#include <stdio.h>

static void quiet(enum ggml_log_level level, const char *text, void *user) {
    (void)level, (void)text, (void)user;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: resave FROM TO\n");
        return 2;
    }
    llama_log_set(quiet, NULL);
    llama_backend_init();
    struct llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = 0;
    params.use_extra_bufts = false; // what lies in these cannot be saved
    struct llama_model *model = llama_model_load_from_file(argv[1], params);
    if (!model) {
        fprintf(stderr, "%s: llama.cpp cannot load it\n", argv[1]);
        return 1;
    }
    llama_model_save_to_file(model, argv[2]);
    return 0;
}
