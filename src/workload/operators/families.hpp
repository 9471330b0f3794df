// Code of operator families that the catalogue names: builders of loop nests and checks of
// relations between shapes.
#pragma once

#include "workload/operators/nest_builder.hpp"
#include "workload/shared/operators.hpp"

namespace monet {

// attention.cpp
LoopNest build_attention(const Graph& graph, const Operator& op);
LoopNest build_attention_grad(const Graph& graph, const Operator& op);

// collective.cpp
LoopNest build_all_reduce(const Graph& graph, const Operator& op);
LoopNest build_all_to_all(const Graph& graph, const Operator& op);
LoopNest build_cut(const Graph& graph, const Operator& op);

// conv.cpp
LoopNest build_conv(const Graph& graph, const Operator& op);
LoopNest build_conv_integer(const Graph& graph, const Operator& op);
LoopNest build_qlinear_conv(const Graph& graph, const Operator& op);

// conv_transpose.cpp
LoopNest build_conv_transpose(const Graph& graph, const Operator& op);

// copy.cpp
LoopNest build_copy(const Graph& graph, const Operator& op);
LoopNest build_move(const Graph& graph, const Operator& op);

// ctc.cpp
LoopNest build_ctc(const Graph& graph, const Operator& op);
LoopNest build_ctc_grad(const Graph& graph, const Operator& op);

// einsum.cpp
LoopNest build_einsum(const Graph& graph, const Operator& op);

// elementwise.cpp
LoopNest build_elementwise(const Graph& graph, const Operator& op);

// elementwise_grad.cpp
LoopNest build_elementwise_grad(const Graph& graph, const Operator& op);

// gather.cpp
LoopNest build_gather(const Graph& graph, const Operator& op);
LoopNest build_gather_elements(const Graph& graph, const Operator& op);
LoopNest build_gather_nd(const Graph& graph, const Operator& op);
LoopNest build_nonzero(const Graph& graph, const Operator& op);
LoopNest build_scatter(const Graph& graph, const Operator& op);

// indexing_grad.cpp
LoopNest build_gather_elements_grad(const Graph& graph, const Operator& op);
LoopNest build_gather_grad(const Graph& graph, const Operator& op);
LoopNest build_gather_nd_grad(const Graph& graph, const Operator& op);
LoopNest build_pool_grad(const Graph& graph, const Operator& op);

// loss.cpp
LoopNest build_cross_entropy_grad(const Graph& graph, const Operator& op);
LoopNest build_elementwise_loss(const Graph& graph, const Operator& op);
LoopNest build_label_smoothing(const Graph& graph, const Operator& op);
LoopNest build_nll(const Graph& graph, const Operator& op);
LoopNest build_nll_grad(const Graph& graph, const Operator& op);
LoopNest build_scaled_grad(const Graph& graph, const Operator& op);

// mac_grad.cpp
LoopNest build_mac_grad(const Graph& graph, const Operator& op);
LoopNest build_product_grad(const Graph& graph, const Operator& op);

// matmul.cpp
LoopNest build_fused_matmul(const Graph& graph, const Operator& op);
LoopNest build_gemm(const Graph& graph, const Operator& op);
LoopNest build_matmul(const Graph& graph, const Operator& op);
LoopNest build_qlinear_matmul(const Graph& graph, const Operator& op);

// microsoft.cpp
LoopNest build_microsoft_cross_entropy_grad(const Graph& graph, const Operator& op);

// movement.cpp
LoopNest build_concat(const Graph& graph, const Operator& op);
LoopNest build_depth_space(const Graph& graph, const Operator& op);
LoopNest build_fill(const Graph& graph, const Operator& op);
LoopNest build_one_hot(const Graph& graph, const Operator& op);
LoopNest build_pad(const Graph& graph, const Operator& op);
LoopNest build_pad_grad(const Graph& graph, const Operator& op);
LoopNest build_permuted(const Graph& graph, const Operator& op);
LoopNest build_slice_grad(const Graph& graph, const Operator& op);
LoopNest build_tile(const Graph& graph, const Operator& op);

// normalization.cpp
LoopNest build_batch_normalization(const Graph& graph, const Operator& op);
LoopNest build_cross_entropy(const Graph& graph, const Operator& op);
LoopNest build_layer_normalization(const Graph& graph, const Operator& op);
LoopNest build_rows(const Graph& graph, const Operator& op);

// normalization_grad.cpp
LoopNest build_batch_norm_grad(const Graph& graph, const Operator& op);
LoopNest build_fixed_batch_norm_grad(const Graph& graph, const Operator& op);
LoopNest build_fixed_batch_norm_grad_weight(const Graph& graph, const Operator& op);
LoopNest build_layer_norm_grad(const Graph& graph, const Operator& op);
LoopNest build_layer_norm_grad_weight(const Graph& graph, const Operator& op);
LoopNest build_softmax_grad(const Graph& graph, const Operator& op);

// normalization_group.cpp
LoopNest build_group_norm(const Graph& graph, const Operator& op);
LoopNest build_group_norm_grad(const Graph& graph, const Operator& op);
LoopNest build_group_norm_grad_weight(const Graph& graph, const Operator& op);
LoopNest build_rms_norm(const Graph& graph, const Operator& op);
LoopNest build_rms_norm_grad(const Graph& graph, const Operator& op);
LoopNest build_rms_norm_grad_weight(const Graph& graph, const Operator& op);

// pooling.cpp
LoopNest build_global_pool(const Graph& graph, const Operator& op);
LoopNest build_lp_pool(const Graph& graph, const Operator& op);
LoopNest build_lp_pool_grad(const Graph& graph, const Operator& op);
LoopNest build_lrn(const Graph& graph, const Operator& op);
LoopNest build_lrn_grad(const Graph& graph, const Operator& op);
LoopNest build_pool(const Graph& graph, const Operator& op);
LoopNest build_unpool(const Graph& graph, const Operator& op);

// quantization.cpp
LoopNest build_fake_quantize(const Graph& graph, const Operator& op);
LoopNest build_grad_scale(const Graph& graph, const Operator& op);

// reduction.cpp
LoopNest build_reduction(const Graph& graph, const Operator& op);
LoopNest build_running_sum(const Graph& graph, const Operator& op);
LoopNest build_top_k(const Graph& graph, const Operator& op);

// reduction_grad.cpp
LoopNest build_reduction_grad(const Graph& graph, const Operator& op);

// relations.cpp
void check_concat(const Graph& graph, const Operator& op);
void check_gather_nd(const Graph& graph, const Operator& op);
void check_gather_nd_grad(const Graph& graph, const Operator& op);
void check_gradients(const Graph& graph, const Operator& op);
void check_one_hot(const Graph& graph, const Operator& op);
void check_pad(const Graph& graph, const Operator& op);
void check_pad_grad(const Graph& graph, const Operator& op);
void check_product_gradients(const Graph& graph, const Operator& op);
void check_reverse_sequence(const Graph& graph, const Operator& op);
void check_scatter_elements(const Graph& graph, const Operator& op);
void check_scatter_nd(const Graph& graph, const Operator& op);
void check_slice_grad(const Graph& graph, const Operator& op);
void check_top_k(const Graph& graph, const Operator& op);
void check_trilu(const Graph& graph, const Operator& op);
void check_views(const Graph& graph, const Operator& op);

// resize.cpp
LoopNest build_resize(const Graph& graph, const Operator& op);
LoopNest build_resize_grad(const Graph& graph, const Operator& op);

// sampling.cpp
LoopNest build_grid_sample(const Graph& graph, const Operator& op);
LoopNest build_grid_sample_grad_grid(const Graph& graph, const Operator& op);
LoopNest build_grid_sample_grad_input(const Graph& graph, const Operator& op);
LoopNest build_roi_align(const Graph& graph, const Operator& op);
LoopNest build_roi_align_grad(const Graph& graph, const Operator& op);

// scaled_cast.cpp
LoopNest build_amax(const Graph& graph, const Operator& op);
LoopNest build_amax_scale(const Graph& graph, const Operator& op);
LoopNest build_amax_update(const Graph& graph, const Operator& op);
LoopNest build_block_cast(const Graph& graph, const Operator& op);
LoopNest build_quantise(const Graph& graph, const Operator& op);
LoopNest build_scaled_cast(const Graph& graph, const Operator& op);

// update.cpp
LoopNest build_distinct(const Graph& graph, const Operator& op);
LoopNest build_loss_scale(const Graph& graph, const Operator& op);
LoopNest build_non_finite(const Graph& graph, const Operator& op);
LoopNest build_put_rows(const Graph& graph, const Operator& op);
LoopNest build_row_update(const Graph& graph, const Operator& op);
LoopNest build_take_rows(const Graph& graph, const Operator& op);
LoopNest build_update(const Graph& graph, const Operator& op);

} // namespace monet
