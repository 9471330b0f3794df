// Operand contracts of all operators, as a table of signatures, and their check; verification of
// graphs calls it.
#include "workload/operators/contract.hpp"

#include "base/shared/text.hpp"
#include "workload/operators/families.hpp"
#include "workload/shared/update_formula.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

namespace monet {

namespace {

/// Operators of one domain with equal signatures. A signature lists operand kinds, inputs before
/// the arrow: r real, i integer, b truth, w whole, n number, s same as the first n. Suffixes: ?
/// optional, * any count including zero, 0 may be empty.
struct Signatures {
  std::string_view domain;
  std::string_view signature;
  std::string_view op_types; ///< separated by blanks
};

constexpr Signatures kSignatures[]{
    // element-wise
    {"", "n > s", "Abs Identity Neg Relu Sign"},
    {"", "r > r",
     "Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid "
     "HardSwish LeakyRelu Log Mish Reciprocal Round Selu Shrink Sigmoid Sin Sinh Softplus Softsign "
     "Sqrt Tan Tanh ThresholdedRelu"},
    {"", "r r > r", "PRelu"},
    {"", "n s > s", "Add Div Mod Mul Sub"},
    {"", "n n > s", "Pow"},
    {"", "n s* > s", "Max Mean Min Sum"},
    {"", "n s? s? > s", "Clip"},
    {"", "n s > w", "Equal Greater GreaterOrEqual Less LessOrEqual"},
    {"", "w w > w", "And BitShift BitwiseAnd BitwiseOr BitwiseXor Or Xor"},
    {"", "w > w", "BitwiseNot Not"},
    {"", "r > w", "IsInf IsNaN"},
    {"", "w n s > s", "Where"},
    {"", "n > n", "Bernoulli Cast RandomNormalLike RandomUniformLike"},
    {"", "n n > n", "CastLike"},
    {"", "> r", "RandomNormal RandomUniform"},
    {"", "r r? w? > r n?", "Dropout"},
    {"", "n r n? > n", "QuantizeLinear"},
    {"", "n r n? > r", "DequantizeLinear"},
    {kMonetDomain, "r r n? > r n?", "FakeQuantize"},
    {kMonetDomain, "r r r n? > r", "FakeQuantizeGradScale"},
    {kMonetDomain, "r > r", "Silu"},
    {kMonetDomain, "n s? s? > s n?", "Clip"},
    {kMonetDomain, "r > r n?", "HardSigmoid LeakyRelu Relu"},
    {"com.microsoft", "r r > r", "BiasGelu ReluGrad SoftmaxGrad SoftmaxGrad_13"},
    {"com.microsoft", "r r? > r", "FastGelu"},
    {"com.microsoft", "r > r", "Gelu QuickGelu"},
    // products
    {"", "n s s? > s", "Conv ConvTranspose Gemm"},
    {"", "n s > s", "MatMul"},
    {"", "n s* > s", "Einsum"},
    {"", "w w w? w? > w", "ConvInteger MatMulInteger"},
    {"", "n r n n r n r n n? > n", "QLinearConv"},
    {"", "n r n n r n r n > n", "QLinearMatMul"},
    {"com.microsoft", "r r > r", "FusedMatMul TransposeMatMul"},
    {kMonetDomain, "r r > r",
     "ConvGradInput ConvGradWeight ConvTransposeGradInput ConvTransposeGradWeight GemmGradA "
     "GemmGradB MatMulGradA MatMulGradB"},
    {kMonetDomain, "r r r > r r", "ProductGrad"},
    {kMonetDomain, "r r? > r", "EinsumGradA EinsumGradB"},
    {kMonetDomain, "r r r n? n? > r r?", "Attention"},
    {kMonetDomain, "r r r r r r n? n? > r? r? r?", "AttentionGrad"},
    // rows
    {"", "r > r", "Hardmax LogSoftmax LpNormalization LRN MeanVarianceNormalization Softmax"},
    {kMonetDomain, "r r > r", "LogSoftmaxGrad SoftmaxGrad"},
    {"", "n > i", "ArgMax ArgMin"},
    {"", "n i?0 > s",
     "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
     "ReduceSum ReduceSumSquare"},
    {"", "n i > s", "CumSum"},
    {"", "n i? > s? i?", "TopK"},
    // normalisation
    {"", "r r? r? r? r? > r r? r? r? r?", "BatchNormalization"},
    {"", "r r? r? > r r? r?", "LayerNormalization"},
    {"", "r r? r? > r r? r?", "GroupNormalization InstanceNormalization"},
    {"", "r r? > r r?", "RMSNormalization"},
    // windows
    {"", "n > s", "AveragePool GlobalMaxPool"},
    {"", "r > r", "GlobalAveragePool GlobalLpPool LpPool"},
    {"", "n > s i?", "MaxPool"},
    {kMonetDomain, "n > s i?", "MaxPool"},
    {"", "n i i? > s", "MaxUnpool"},
    {kMonetDomain, "r i > r", "MaxPoolGrad MaxUnpoolGrad"},
    {kMonetDomain, "r > r", "AveragePoolGrad"},
    {kMonetDomain, "r r r > r", "LpPoolGrad"},
    {"com.microsoft", "r > r", "AveragePoolGrad"},
    {kMonetDomain, "r r > r", "LRNGrad LpNormalizationGrad"},
    // indices
    {"", "n i > s", "Gather GatherElements GatherND"},
    {"", "n i s > s", "Scatter ScatterElements ScatterND"},
    {"", "n > i", "NonZero"},
    {"", "n n n > n", "OneHot"},
    {"", "n i > s", "ReverseSequence"},
    {kMonetDomain, "r i > r", "GatherElementsGrad GatherGrad GatherNDGrad"},
    {kMonetDomain, "n i i > s", "ShardGather"},
    {kMonetDomain, "r i i > r", "ShardGatherGrad"},
    {kMonetDomain, "i > i i", "DistinctIndices"},
    {kMonetDomain, "r i > r", "PutRows TakeRows"},
    // data movement and views
    {"", "n s* > s", "Concat"},
    {"", "n > s", "DepthToSpace Flatten SpaceToDepth Transpose"},
    {"", "n > n", "EyeLike"},
    {"", "n i?0 s? i?0 > s", "Pad"},
    {"", "n i?0 > s", "Expand Tile"},
    {"", "n i?0 > s", "Reshape"},
    {"", "n i?0 > s", "Squeeze Unsqueeze"},
    {"", "n i?0 i?0 i?0 i?0 > s", "Slice"},
    {"", "n i? > s*", "Split"},
    {"", "n i? > s", "Trilu"},
    {"", "n r?0 r?0 i?0 > s", "Resize"},
    {kMonetDomain, "r > r", "PadGrad ResizeGrad SliceGrad"},
    {kMonetDomain, "n i*0 > s", "Copy"},
    {kMonetDomain, "n > s", "AllGather AllReduce AllToAll Fetch Offload ReduceScatter TakeShard"},
    // sampling
    {"", "r r > r", "GridSample"},
    {"", "r r i > r", "RoiAlign"},
    {kMonetDomain, "r r > r", "GridSampleGradInput"},
    {kMonetDomain, "r r r > r", "GridSampleGradGrid"},
    {kMonetDomain, "r r i r? > r", "RoiAlignGrad"},
    // losses
    {"", "r i r? > r r?", "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"},
    {kMonetDomain, "r i r? r? > r", "NegativeLogLikelihoodLossGrad"},
    {kMonetDomain, "r i r? > r r?", "LabelSmoothingLoss"},
    {kMonetDomain, "r i r? r? > r", "SoftmaxCrossEntropyGrad"},
    {"com.microsoft", "r r i r? > r", "SoftmaxCrossEntropyLossGrad"},
    {kMonetDomain, "r i > r r? r?", "CtcLoss"},
    {kMonetDomain, "r i r r > r", "CtcLossGrad"},
    // casts with a scale, and updates
    {kMonetDomain, "r r > r r?", "ScaledCast"},
    {kMonetDomain, "r > r? r?", "BlockCast"},
    {kMonetDomain, "r > r r*", "Quantise"},
    {kMonetDomain, "r > r", "Requantise"},
    {kMonetDomain, "r > r", "Amax AmaxScale"},
    {kMonetDomain, "r r r* > r r", "AmaxUpdate"},
    {kMonetDomain, "r > n", "NonFinite"},
    {kMonetDomain, "r n n > r n", "LossScaleUpdate"},
    // gradients of normalisations and element-wise operators, and named losses
    {kMonetDomain, "r r? r? r? r? > r r? r? r? r?", "BatchNormalization"},
    {kMonetDomain, "r r r? r r > r? r? r?", "BatchNormGrad"},
    {kMonetDomain, "r r r > r", "BatchNormInferenceGrad RMSNormGradWeight"},
    {kMonetDomain, "r r r r > r? r?",
     "BatchNormInferenceGradWeight GroupNormGradWeight LayerNormGradWeight"},
    {kMonetDomain, "r r r? r r > r", "GroupNormGrad LayerNormGrad"},
    {kMonetDomain, "r r r? r > r", "RMSNormGrad"},
    {kMonetDomain, "r r r? > r n?",
     "BceLoss BceWithLogitsLoss HuberLoss KlDivLoss L1Loss MseLoss SmoothL1Loss"},
    {kMonetDomain, "n n? n? > r",
     "BceLossGrad BceWithLogitsLossGrad HuberLossGrad KlDivLossGrad L1LossGrad MseLossGrad "
     "SmoothL1LossGrad"},
    {kMonetDomain, "r r r? > r",
     "ReduceExtremumGrad ReduceL1Grad ReduceL2Grad ReduceLogSumExpGrad ReduceProdGrad "
     "ReduceSumSquareGrad"},
    {kMonetDomain, "r n n? n? > r? r? r?", "ClipGrad"},
    {kMonetDomain, "r n n* > r? r*", "MaxGrad MinGrad"},
    {kMonetDomain, "r n > r",
     "AbsGrad AcosGrad AcoshGrad AsinGrad AsinhGrad AtanGrad AtanhGrad CeluGrad CosGrad "
     "CoshGrad DropoutGrad EluGrad ErfGrad GeluGrad HardSigmoidGrad HardSwishGrad "
     "LeakyReluGrad MaskGrad MishGrad ReciprocalGrad ReluGrad SeluGrad ShrinkGrad SigmoidGrad "
     "SiluGrad SinGrad SinhGrad SoftplusGrad SoftsignGrad SqrtGrad SquareGrad TanGrad TanhGrad "
     "ThresholdedReluGrad"},
    {kMonetDomain, "r n > r? r?", "WhereGrad"},
    {kMonetDomain, "r n? n? > r? r?", "MulGrad"},
    {kMonetDomain, "r n? n > r? r?", "DivGrad"},
    {kMonetDomain, "r n n > r? r?", "ModGrad"},
    {kMonetDomain, "r n n? > r? r?", "PReluGrad"},
    {kMonetDomain, "r n n n? > r? r?", "PowGrad"},
};

OperandKind kind_of(char letter) {
  constexpr std::string_view kLetters = "ribwns"; // in the order of OperandKind
  const std::size_t kind = kLetters.find(letter);
  internal_check(kind != kLetters.npos, "a signature has a letter that stands for nothing");
  return static_cast<OperandKind>(kind);
}

std::vector<OperandContract> parse_operands(std::string_view list) {
  std::vector<OperandContract> operands;
  for (const char letter : list) {
    if (letter == ' ')
      continue;
    if (letter == '?') {
      operands.back().optional = true;
    } else if (letter == '*') {
      operands.back().optional = operands.back().any_count = true;
    } else if (letter == '0') {
      operands.back().may_be_empty = true;
    } else {
      operands.push_back({kind_of(letter)});
    }
  }
  return operands;
}

void add_group(const Signatures& group, std::vector<Contract>& rows) {
  const std::size_t arrow = group.signature.find('>');
  const auto inputs = parse_operands(group.signature.substr(0, arrow));
  const auto outputs = parse_operands(group.signature.substr(arrow + 1));
  for (const std::string_view op_type : split(group.op_types, ' ', group.op_types.size()))
    rows.push_back({group.domain, op_type, inputs, outputs});
}

std::vector<Contract> collect_contracts() {
  std::vector<Contract> rows;
  for (const Signatures& group : kSignatures)
    add_group(group, rows);
  sort_by_operator(rows, "two contracts for one operator");
  return rows;
}

bool is_truth(ElementType type) {
  return type == ElementType::boolean || type == ElementType::bit;
}

bool fits(ElementType type, OperandKind kind) {
  const bool real = is_floating(type);
  switch (kind) {
  case OperandKind::real:
    return real;
  case OperandKind::integer:
    return !real && !is_truth(type);
  case OperandKind::truth:
    return is_truth(type);
  case OperandKind::whole:
    return !real;
  default:
    return true;
  }
}

std::string_view words_for(OperandKind kind) {
  // Indexed by OperandKind.
  static constexpr std::array<std::string_view, 6> kWords{
      "real numbers", "integers", "truth values", "integers or truth values", "numbers", "numbers"};
  return kWords.at(static_cast<std::size_t>(kind));
}

/// Checks one list of operands of an operator.
class ContractCheck {
public:
  ContractCheck(const Graph& graph, const Operator& op) : graph_(graph), op_(op) {}

  void check(const std::vector<OperandContract>& rows,
             const std::vector<std::optional<TensorId>>& operands, std::string_view side) {
    for (std::size_t i = 0; i < std::max(rows.size(), operands.size()); ++i) {
      const OperandContract* row = row_for(rows, i);
      const bool there = i < operands.size() && operands[i];
      const auto detail = [&] { return fmt::format("{} {}", side, i); };
      if (row == nullptr && there)
        refuse(fmt::format("at most {} are expected", rows.size()), detail());
      if (row != nullptr && !there && !row->optional)
        refuse("it is missing", detail());
      if (row != nullptr && there)
        check_operand(*row, graph_.tensor(*operands[i]), detail);
    }
  }

private:
  static const OperandContract* row_for(const std::vector<OperandContract>& rows, std::size_t i) {
    if (i < rows.size())
      return &rows[i];
    return !rows.empty() && rows.back().any_count ? &rows.back() : nullptr;
  }

  template <class Detail>
  void check_operand(const OperandContract& row, const Tensor& tensor, Detail detail) {
    if (tensor.type == ElementType::string)
      refuse(fmt::format("'{}' holds strings, numbers are expected", tensor.name), detail());
    OperandKind kind = row.kind;
    if (kind == OperandKind::number && !real_)
      real_ = is_floating(tensor.type);
    if (kind == OperandKind::same)
      kind = real_.value_or(true) ? OperandKind::real : OperandKind::whole;
    if (!fits(tensor.type, kind)) {
      refuse(fmt::format("'{}' is {}, {} are expected", tensor.name, name_of(tensor.type),
                         words_for(kind)),
             detail());
    }
    if (!row.may_be_empty && std::ranges::find(tensor.shape, 0) != tensor.shape.end())
      refuse(fmt::format("'{}' has no elements", tensor.name), detail());
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& detail) const {
    throw InputError(location_of(graph_, op_, detail), what);
  }

  const Graph& graph_;
  const Operator& op_;
  std::optional<bool> real_; ///< of the first `number` operand
};

/// Contract of optimiser updates: weights, gradients and states in the optimiser's order, which may
/// include row indices.
const Contract& update_contract() {
  static const Contract contract{kMonetDomain, {}, parse_operands("n*"), parse_operands("n*")};
  return contract;
}

} // namespace

const Contract* contract_of(const Operator& op) {
  static const std::vector<Contract> rows = collect_contracts();
  if (const Contract* row = find_by_operator(rows, op.domain, op.op_type))
    return row;
  const auto updates = formula_operators();
  const bool is_update =
      op.domain == kMonetDomain && std::ranges::find(updates, op.op_type) != updates.end();
  return is_update ? &update_contract() : nullptr;
}

void check_contract(const Graph& graph, const Operator& op) {
  const Contract* contract = contract_of(op);
  internal_check(contract != nullptr,
                 fmt::format("no contract for '{}' of domain '{}'", op.op_type, op.domain));
  const auto is_there = [](const auto& operand) { return operand.has_value(); };
  if (std::ranges::none_of(op.outputs, is_there))
    throw InputError(location_of(graph, op), "it has no result");
  ContractCheck checker(graph, op);
  checker.check(contract->inputs, op.inputs, "input");
  checker.check(contract->outputs, op.outputs, "output");
}

} // namespace monet
