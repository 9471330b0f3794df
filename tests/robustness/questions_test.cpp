// Random valid questions are answered, refused with a place, or infeasible with a reason: never
// our bug, never endless. MONET_FIRST_QUESTION and MONET_QUESTIONS ask others, or more.
#include "robustness/question.hpp"
#include "level.hpp"

#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

namespace monet {
namespace {

using testing::Answer;
using testing::Question;
using testing::Search;

constexpr double kLongest = 10;    ///< seconds of processor time
constexpr time_t kHang = 120;      ///< likewise; a question is taken to be endless then
volatile std::sig_atomic_t asking; ///< low bits of the seed

/// Says which question ended the process.
extern "C" void on_end(int signal) {
  char text[80];
  const int length = std::snprintf(text, sizeof text, "\nquestion %lu: signal %d\n",
                                   static_cast<unsigned long>(asking), signal);
  (void)!write(STDERR_FILENO, text, static_cast<std::size_t>(length));
  std::signal(signal, SIG_DFL);
  raise(signal);
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Tally {
  std::map<std::string, std::map<Answer::Kind, int>> by_kind; ///< of search and mode
  std::set<std::string> layers;                               ///< of answered questions
  double longest = 0;
  std::uint64_t slowest = 0;
  int answered = 0;
};

bool fails(const Answer& answer) {
  return answer.kind == Answer::Kind::broken || answer.seconds > kLongest;
}

/// What stays the same when a failure is shrunk: the message without its numbers and names.
std::string sort_of(const Answer& answer) {
  std::string sort = answer.kind == Answer::Kind::broken ? answer.why : "slow";
  const std::size_t place = sort.find(" (");
  return sort.substr(place == std::string::npos ? 0 : place).substr(0, 60);
}

void explain(std::uint64_t seed, const Question& question, const Answer& answer) {
  const std::string sort = sort_of(answer);
  const Question least = shrunk(question, [&](const Question& q) {
    const Answer next = ask(q);
    return fails(next) && sort_of(next) == sort;
  });
  const Answer again = ask(least);
  if (const char* folder = std::getenv("MONET_KEEP"))
    write_file_atomically(fmt::format("{}/{}.onnx", folder, seed), grow(least.network).onnx);
  ADD_FAILURE() << "question " << seed << ", " << answer.seconds << " s: " << answer.why
                << "\nshrunk: " << again.why << "\n"
                << in_words(least);
}

/// Of processor time; 0: never.
void end_after(time_t seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

void ask_all(std::uint64_t first, std::uint64_t count, Tally& tally) {
  for (const int signal : {SIGPROF, SIGSEGV, SIGABRT, SIGFPE})
    std::signal(signal, on_end);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    asking = static_cast<std::sig_atomic_t>(seed);
    end_after(kHang);
    const Question question = testing::random_question(seed);
    const Answer answer = ask(question);
    const std::string what =
        fmt::format("{}, {}, {}", name_of(question.search), name_of(question.mode),
                    question.trains ? "training" : "inference");
    ++tally.by_kind[what][answer.kind];
    if (answer.seconds > tally.longest) {
      tally.longest = answer.seconds;
      tally.slowest = seed;
    }
    if (answer.kind == Answer::Kind::found) {
      ++tally.answered;
      tally.layers.insert(answer.layers.begin(), answer.layers.end());
    }
    if (std::getenv("MONET_REASONS") != nullptr && answer.kind != Answer::Kind::found)
      std::printf("%lu %s\n", static_cast<unsigned long>(seed), answer.why.c_str());
    end_after(0); // what is shrunk is asked many times
    if (fails(answer))
      explain(seed, question, answer);
  }
  end_after(0);
}

TEST(Questions, have_answers) {
  const std::uint64_t first = number_from("MONET_FIRST_QUESTION", 1);
  const std::uint64_t count = number_from("MONET_QUESTIONS", static_cast<std::uint64_t>(test::cases(100, 800, 20000)));
  Tally tally;
  ask_all(first, count, tally);
  for (const auto& [what, kinds] : tally.by_kind) {
    std::printf("%-40s", what.c_str());
    const auto of = [&](Answer::Kind kind) {
      const auto found = kinds.find(kind);
      return found == kinds.end() ? 0 : found->second;
    };
    std::printf(" answered %5d refused %5d infeasible %5d stopped %5d broken %5d\n",
                of(Answer::Kind::found), of(Answer::Kind::refused), of(Answer::Kind::infeasible),
                of(Answer::Kind::stopped), of(Answer::Kind::broken));
  }
  std::printf("questions %lu to %lu: %d answered, longest %.2f s (%lu)\n",
              static_cast<unsigned long>(first), static_cast<unsigned long>(first + count - 1),
              tally.answered, tally.longest, static_cast<unsigned long>(tally.slowest));
  if (count < 500)
    return;
  EXPECT_GT(tally.answered, static_cast<int>(count / 3));
  for (const std::string& family : testing::layer_families())
    EXPECT_TRUE(tally.layers.contains(family)) << "no answered question has " << family;
}

} // namespace
} // namespace monet
