#include "compile/include_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string_view>

namespace monet::test {
namespace {

namespace fs = std::filesystem;

struct StageRooms {
  std::string_view stage;
  std::vector<std::string_view> rooms; ///< a room uses those before it
};

/// Stages in the order of the data. The root of a stage's folder is its entrance: it uses all
/// rooms, and no room uses it. `shared` is no room: what it declares may be used by later stages.
const std::vector<StageRooms> kHouse{
    {"base", {}},
    {"numerics", {"lanes"}},
    {"workload", {"operators", "onnx", "imported_steps", "transformer"}},
    {"hardware", {}},
    {"training_graph", {"options", "build", "gradients", "forward", "update", "memory", "passes"}},
    {"execute", {"walk", "kernels"}},
    {"fit", {"data", "study", "loop"}},
    {"core_cost", {"model", "zigzag", "search", "input_gradient", "joint_mapping", "files"}},
    {"tiling", {"partition", "stacks", "fusion_estimate", "dependencies"}},
    {"schedule", {"cost", "placement", "check"}},
    {"model", {}},
    {"optimise",
     {"search", "milp", "bounds", "recompute", "recompute/bounds", "recompute/heuristics",
      "recompute/exact", "recompute/steps", "allocation", "fusion", "joint"}},
    {"cluster",
     {"network", "device", "partition", "pipeline", "strategy", "cost", "step", "planner"}},
    {"explore", {"space", "store", "evaluate", "strategy", "run"}},
    {"reference", {"stream/tiles", "stream/costs", "stream/schedule", "einsum"}},
    {"report", {"comparison", "search", "train", "cluster"}},
};
const std::vector<std::string_view> kAppRooms{"options", "commands"};
/// Its engines, the folders that hold its rooms, know nothing of each other.
constexpr std::string_view kApart = "reference";
constexpr std::string_view kShared = "shared";
constexpr std::string_view kForwardDeclarations = "nlohmann/json_fwd.hpp";

template <class Range, class Same>
std::optional<std::size_t> rank_in(const Range& range, Same same) {
  const auto found = std::find_if(range.begin(), range.end(), same);
  if (found == range.end())
    return std::nullopt;
  return static_cast<std::size_t>(found - range.begin());
}

std::optional<std::size_t> stage_rank(std::string_view stage) {
  return rank_in(kHouse, [&](const StageRooms& s) { return s.stage == stage; });
}

std::optional<std::size_t> room_rank(const std::vector<std::string_view>& rooms,
                                     std::string_view room) {
  return rank_in(rooms, [&](std::string_view r) { return r == room; });
}

struct Include {
  std::string name;
  bool quoted = false;
};

struct File {
  std::string path;  ///< from the root
  std::string part;  ///< include, src, apps, bench, fuzz or tests
  std::string stage; ///< of include, src and tests
  std::string room;  ///< the folders below the stage, or below apps/monet
  std::vector<Include> includes;

  bool is_header() const { return path.ends_with(".hpp"); }
  bool is_of_the_product() const { return part == "include" || part == "src" || part == "apps"; }
  bool is_public() const { return part == "include"; }
  bool is_private() const { return part == "src" && room != kShared; }
  bool is_for_others() const { return is_header() && !is_private(); }
};

File read(const fs::path& root, const fs::path& path) {
  File file;
  file.path = path.lexically_relative(root).generic_string();
  static const std::regex place(
      "(include/monet|src|tests|apps|bench|fuzz)/(?:([^/]+)/)?(?:(.+)/)?[^/]+");
  std::smatch found;
  if (std::regex_match(file.path, found, place)) {
    file.part = found[1] == "include/monet" ? "include" : found[1].str();
    file.stage = found[2];
    file.room = found[3];
  }
  std::ifstream in(path);
  static const std::regex include(R"re(\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>).*)re");
  for (std::string line; std::getline(in, line);) {
    if (line.find("#") != std::string::npos && std::regex_match(line, found, include))
      file.includes.push_back({found[1].matched ? found[1] : found[2], found[1].matched});
  }
  return file;
}

class Check {
public:
  explicit Check(const fs::path& root) {
    for (const std::string_view part : {"include/monet", "src", "apps", "bench", "fuzz", "tests"}) {
      if (!fs::exists(root / part))
        continue;
      for (const auto& entry : fs::recursive_directory_iterator(root / part)) {
        const fs::path extension = entry.path().extension();
        if (extension == ".hpp" || extension == ".cpp") {
          File file = read(root, entry.path());
          files_.emplace(file.path, std::move(file));
        }
      }
    }
    for (const auto& [path, file] : files_) {
      const File* own = path.ends_with(".cpp") && !file.includes.empty()
                            ? target(file, file.includes.front())
                            : nullptr;
      if (own && file.part == "src" && file.stage == own->stage && !own->is_private())
        makers_[own->path].insert(file.room);
    }
  }

  std::vector<std::string> run() {
    for (const auto& [path, file] : files_) {
      check_place(file);
      std::set<std::string_view> private_stages;
      for (const Include& include : file.includes) {
        const File* to = target(file, include);
        if (to) {
          check_arrow(file, *to);
          if (to->is_private())
            private_stages.insert(to->stage);
        } else if (!include.quoted && file.is_header() && file.is_of_the_product()) {
          check_third_party(file, include.name);
        }
      }
      if ((file.part == "bench" || file.part == "fuzz") && private_stages.size() > 1)
        broken_.push_back(file.path + ": uses private headers of several stages");
    }
    std::sort(broken_.begin(), broken_.end());
    return std::move(broken_);
  }

private:
  /// As the compiler finds it; null for what is not the repository's.
  const File* target(const File& from, const Include& include) const {
    const std::string folder = from.path.substr(0, from.path.rfind('/') + 1);
    for (const std::string& where :
         {folder, std::string("include/"), std::string("src/"), std::string("tests/"),
          std::string("apps/monet/"), std::string()}) {
      const auto found =
          files_.find(fs::path(where + include.name).lexically_normal().generic_string());
      if (found != files_.end())
        return &found->second;
    }
    return nullptr;
  }

  void check_place(const File& file) {
    if (file.part != "src" && file.part != "include")
      return;
    const auto rank = stage_rank(file.stage);
    if (!rank)
      broken_.push_back(file.path + ": its stage has no place in the order of stages");
    else if (file.part == "src" && !file.room.empty() && file.room != kShared &&
             !room_rank(kHouse[*rank].rooms, file.room))
      broken_.push_back(file.path + ": its room has no place in the order of rooms");
  }

  void check_third_party(const File& file, const std::string& name) {
    const bool of_the_system = name.starts_with("sys/");
    if (name.find_first_of("/.") != std::string::npos && name != kForwardDeclarations &&
        !of_the_system)
      report(file, name, "third-party headers belong into .cpp files");
  }

  void check_arrow(const File& from, const File& to) {
    if (from.part == "src" || from.part == "include")
      check_stages(from, to);
    else if (from.part == "tests" && to.is_private() && from.stage != to.stage)
      report(from, to.path, "a test uses private headers of its own stage only");
    else if (from.part == "apps" && to.is_private())
      report(from, to.path, "a private header of a stage");
    else if (from.part == "apps" && to.part == "apps")
      check_rooms(from, {from.room}, {to.room}, kAppRooms);
  }

  void check_stages(const File& from, const File& to) {
    if (to.part != "src" && to.part != "include")
      return report(from, to.path, "the library uses include and src only");
    const auto own = stage_rank(from.stage);
    const auto other = stage_rank(to.stage);
    if (!own || !other)
      return;
    if (*other > *own)
      report(from, to.path, "a later stage");
    else if (*other < *own && to.is_private())
      report(from, to.path, "a private header of another stage");
    else if (from.is_public() ? !to.is_public() : from.is_for_others() && to.is_private())
      report(from, to.path, "a private header in one for others");
    else if (*other == *own)
      check_rooms_of_stage(from, to, kHouse[*own].rooms);
  }

  void check_rooms_of_stage(const File& from, const File& to,
                            const std::vector<std::string_view>& rooms) {
    if (from.is_private() && !from.room.empty() && to.is_private() && to.room.empty())
      return report(from, to.path, "a room does not use its stage's entrance");
    check_rooms(from, homes(from), homes(to), rooms);
  }

  /// Rooms that a file belongs to: a header for others to where it is implemented.
  std::set<std::string> homes(const File& file) const {
    if (file.is_private())
      return {file.room};
    const auto found = makers_.find(file.path);
    return found == makers_.end() ? std::set<std::string>{} : found->second;
  }

  void check_rooms(const File& from, const std::set<std::string>& own,
                   const std::set<std::string>& other, const std::vector<std::string_view>& rooms) {
    if (from.stage == kApart) {
      const auto engine = [](const std::string& room) { return room.substr(0, room.find('/')); };
      for (const std::string& a : own) {
        for (const std::string& b : other) {
          if (engine(a) != engine(b))
            return report(from, b, "another engine of comparison");
        }
      }
    }
    if (own.size() != 1 || other.size() != 1)
      return;
    const auto here = room_rank(rooms, *own.begin());
    const auto there = room_rank(rooms, *other.begin());
    if (here && there && *there > *here)
      report(from, *other.begin(), "a later room");
  }

  void report(const File& from, std::string_view what, std::string_view why) {
    broken_.push_back(fmt::format("{} includes {}: {}", from.path, what, why));
  }

  std::map<std::string, File> files_;
  /// Rooms whose files begin with a header for others, which they implement.
  std::map<std::string, std::set<std::string>> makers_;
  std::vector<std::string> broken_;
};

} // namespace

std::vector<std::string> broken_includes(const fs::path& root) {
  return Check(root).run();
}

} // namespace monet::test
