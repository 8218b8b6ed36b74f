/* The table of known modules. */
#include "task/blame/modules.h"

#include <string.h>

static const struct known_class classes[] = {
    {"Linear NonDynamicallyQuantizableLinear", "linear", "weight! bias", "", 1, false},
    {"Bilinear", "bilinear", "weight! bias", "", 2, false},
    {"Conv0d", "conv0d", "weight! bias", "stride padding dilation groups", 1, false},
    {"ConvTranspose0d", "conv_transpose0d", "weight! bias",
     "stride padding output_padding groups dilation", 1, false},
    {"LayerNorm", "layer_norm", "weight bias", "normalized_shape eps", 1, false},
    {"FusedLayerNorm MixedFusedLayerNorm", "layer_norm", "weight bias", "normalized_shape eps", 1,
     true},
    {"RMSNorm", "rms_norm", "weight", "normalized_shape eps", 1, false},
    {"FusedRMSNorm MixedFusedRMSNorm", "rms_norm", "weight", "normalized_shape eps", 1, true},
    {"LlamaRMSNorm MistralRMSNorm MixtralRMSNorm Qwen2RMSNorm Qwen3RMSNorm DeepseekV2RMSNorm "
     "DeepseekV3RMSNorm InternLM2RMSNorm T5LayerNorm Qwen2MoeRMSNorm Qwen3MoeRMSNorm Phi3RMSNorm "
     "MambaRMSNorm",
     "rms_norm", "weight!", "normalized_shape eps=variance_epsilon", 1, true},
    {"GroupNorm", "group_norm", "weight bias", "num_groups eps", 1, false},
    {"BatchNorm0d", "batch_norm", "running_mean running_var weight bias", "training eps", 1, false},
    {"InstanceNorm0d", "instance_norm", "running_mean running_var weight bias",
     "use_input_stats eps", 1, false},
    {"LocalResponseNorm", "local_response_norm", "", "size! alpha! beta! k!", 1, false},
    {"Embedding", "embedding", "weight!", "padding_idx max_norm", 1, false},
    {"ReLU", "relu", "", "", 1, false},
    {"ReLU6", "relu6", "", "", 1, false},
    {"LeakyReLU", "leaky_relu", "", "negative_slope", 1, false},
    {"ELU", "elu", "", "alpha", 1, false},
    {"SELU", "selu", "", "", 1, false},
    {"CELU", "celu", "", "alpha", 1, false},
    {"GELU", "gelu", "", "approximate", 1, false},
    {"GELUActivation", "gelu", "", "approximate:none", 1, true},
    {"GELUTanh PytorchGELUTanh", "gelu", "", "approximate:tanh", 1, true},
    {"SiLU", "silu", "", "", 1, false},
    {"SiLUActivation", "silu", "", "", 1, true},
    {"Mish", "mish", "", "", 1, false},
    {"Sigmoid", "sigmoid", "", "", 1, false},
    {"Tanh", "tanh", "", "", 1, false},
    {"Softplus", "softplus", "", "beta threshold", 1, false},
    {"Softsign", "softsign", "", "", 1, false},
    {"Softshrink", "softshrink", "", "lambd", 1, false},
    {"Hardshrink", "hardshrink", "", "lambd", 1, false},
    {"Tanhshrink", "tanhshrink", "", "", 1, false},
    {"Hardtanh", "hardtanh", "", "min_val max_val", 1, false},
    {"Hardswish", "hardswish", "", "", 1, false},
    {"Hardsigmoid", "hardsigmoid", "", "", 1, false},
    {"LogSigmoid", "logsigmoid", "", "", 1, false},
    {"Threshold", "threshold", "", "threshold! value!", 1, false},
    {"PReLU", "prelu", "weight!", "", 1, false},
    {"GLU", "glu", "", "dim", 1, false},
    {"Softmax", "softmax", "", "dim", 1, false},
    {"LogSoftmax", "log_softmax", "", "dim", 1, false},
    {"Softmin", "softmin", "", "dim", 1, false},
    {"Softmax2d", "softmax", "", "dim:-3", 1, false},
    {"ZeroPad0d ConstantPad0d", "pad", "", "pad=padding! value", 1, false},
    {"ReflectionPad0d", "pad", "", "pad=padding! mode:reflect", 1, false},
    {"ReplicationPad0d", "pad", "", "pad=padding! mode:replicate", 1, false},
    {"CircularPad0d", "pad", "", "pad=padding! mode:circular", 1, false},
    {"Fold", "fold", "", "output_size! kernel_size! dilation! padding! stride!", 1, false},
    {"Unfold", "unfold", "", "kernel_size! dilation! padding! stride!", 1, false},
    {"LPPool0d", "lp_pool0d", "", "norm_type! kernel_size! stride! ceil_mode", 1, false},
    {"Dropout Dropout0d AlphaDropout FeatureAlphaDropout Identity", "clone", "", "", 1, false},
    {"Flatten Unflatten", "reshape", "", "shape", 1, false},
    {"MaxPool0d", "max_pool0d", "", "kernel_size stride padding dilation ceil_mode", 1, false},
    {"AvgPool1d", "avg_pool1d", "", "kernel_size stride padding ceil_mode count_include_pad", 1,
     false},
    {"AvgPool0d", "avg_pool0d", "",
     "kernel_size stride padding ceil_mode count_include_pad divisor_override", 1, false},
    {"AdaptiveAvgPool0d", "adaptive_avg_pool0d", "", "output_size", 1, false},
    {"AdaptiveMaxPool0d", "adaptive_max_pool0d", "", "output_size", 1, false},
    {"PixelShuffle", "pixel_shuffle", "", "upscale_factor", 1, false},
    {"PixelUnshuffle", "pixel_unshuffle", "", "downscale_factor", 1, false},
    {"CosineSimilarity", "cosine_similarity", "", "dim eps", 2, false},
    {"L1Loss", "l1_loss", "", "reduction", 2, false},
    {"MSELoss", "mse_loss", "", "reduction", 2, false},
    {"SmoothL1Loss", "smooth_l1_loss", "", "reduction beta", 2, false},
    {"HuberLoss", "huber_loss", "", "reduction delta", 2, false},
    {"BCELoss", "binary_cross_entropy", "weight", "reduction", 2, false},
    {"BCEWithLogitsLoss", "binary_cross_entropy_with_logits", "weight pos_weight", "reduction", 2,
     false},
    {"KLDivLoss", "kl_div", "", "reduction log_target", 2, false},
    {"NLLLoss", "nll_loss", "weight", "ignore_index reduction", 2, false},
    {"SoftMarginLoss", "soft_margin_loss", "", "reduction", 2, false},
    {"HingeEmbeddingLoss", "hinge_embedding_loss", "", "margin! reduction", 2, false},
    {"MultiLabelMarginLoss", "multilabel_margin_loss", "", "reduction", 2, false},
    {"MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", "weight", "reduction", 2, false},
    {"MultiMarginLoss", "multi_margin_loss", "weight", "p! margin! reduction", 2, false},
    {"PoissonNLLLoss", "poisson_nll_loss", "", "log_input! full! eps! reduction", 2, false},
    {"GaussianNLLLoss", "gaussian_nll_loss", "", "full! eps! reduction", 3, false},
    {"MarginRankingLoss", "margin_ranking_loss", "", "margin! reduction", 3, false},
    {"CosineEmbeddingLoss", "cosine_embedding_loss", "", "margin! reduction", 3, false},
    {"TripletMarginLoss", "triplet_margin_loss", "", "margin! p! eps! swap! reduction", 3, false},
    {"PairwiseDistance", "pairwise_distance", "", "p=norm! eps! keepdim!", 2, false},
    {"CrossEntropyLoss", "cross_entropy", "weight", "ignore_index reduction label_smoothing", 2,
     false},
};

/* Whether a word of the list is the name, 0 in it standing for 1, 2 or 3. */
static bool names_it(const char *list, const char *name, unsigned *dimensions)
{
    for (const char *at = list; *at;) {
        const size_t length = strcspn(at, " ");
        bool same = strlen(name) == length;
        unsigned number = 0;
        for (size_t k = 0; same && k < length; k++) {
            const bool any = at[k] == '0' && name[k] >= '1' && name[k] <= '3';
            if (any)
                number = (unsigned)(name[k] - '0');
            same = any || at[k] == name[k];
        }
        if (same) {
            *dimensions = number;
            return true;
        }
        at += length;
        at += strspn(at, " ");
    }
    return false;
}

const struct known_class *modules_find(const char *name, unsigned *dimensions)
{
    for (size_t k = 0; k < sizeof classes / sizeof *classes; k++)
        if (names_it(classes[k].names, name, dimensions))
            return &classes[k];
    return NULL;
}
