// A host whose locale writes 0,5: it must not affect what the library reads or writes.
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "small_run.h"

namespace {

using namespace st::test;

/// German in all that a number or a date may show. Debian's own order of letters takes two seconds to compile.
constexpr const char* kSource = R"(LC_CTYPE
copy "POSIX"
END LC_CTYPE
LC_COLLATE
copy "POSIX"
END LC_COLLATE
LC_IDENTIFICATION
copy "de_DE"
END LC_IDENTIFICATION
LC_NUMERIC
copy "de_DE"
END LC_NUMERIC
LC_MONETARY
copy "de_DE"
END LC_MONETARY
LC_TIME
copy "de_DE"
END LC_TIME
LC_MESSAGES
copy "de_DE"
END LC_MESSAGES
LC_PAPER
copy "de_DE"
END LC_PAPER
LC_NAME
copy "de_DE"
END LC_NAME
LC_ADDRESS
copy "de_DE"
END LC_ADDRESS
LC_TELEPHONE
copy "de_DE"
END LC_TELEPHONE
LC_MEASUREMENT
copy "de_DE"
END LC_MEASUREMENT
)";

/// Switches the process to a German locale, created for this test since few machines have one.
class GermanLocale {
 public:
  GermanLocale() {
    const auto folder = std::filesystem::path(testing::TempDir()) / "scaletrain_locale";
    std::filesystem::create_directories(folder);
    const std::string command = "localedef -c -f UTF-8 -i '" + file_of("german_numbers", kSource) + "' '" +
                                (folder / "de_DE.UTF-8").string() + "' > /dev/null 2>&1";
    static_cast<void>(!std::system(command.c_str()));  // ignores the status: warnings make it fail; only the existence of the locale counts
    setenv("LOCPATH", folder.c_str(), 1);
    there_ = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
    unsetenv("LOCPATH");
  }
  ~GermanLocale() { std::setlocale(LC_ALL, "C"); }
  GermanLocale(const GermanLocale&) = delete;
  GermanLocale& operator=(const GermanLocale&) = delete;
  bool is_there() const { return there_; }

 private:
  bool there_ = false;
};

std::string printed(double value) {
  char line[32];
  std::snprintf(line, sizeof line, "%.1f", value);
  return line;
}

/// All output of a run: numbers of many kinds in text, JSON, a page and the state.
struct Answers {
  std::string digest, recipe, plan, explained, page, refusal;
};

Answers answers(const std::string& text) {
  Answers all;
  const char* out = "";
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const auto model = hold<HeldModel>(st_model_builtin, context, "gpt", R"({"layers": 1, "width": 16, "heads": 2, "context": 8})", 1);
  auto recipe = hold<HeldRecipe>(
      st_recipe_create,
      R"({"batch": 3, "lr": 0.0125, "beta1": 0.875, "epsilon": 1.5e-8, "weight_decay": 0.25, "clip": 0.5, "dropout": 0.125})");
  const auto data = hold<HeldData>(st_data_files, context, text.c_str(), R"({"context": 8})");
  const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, data);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(works(st_trainer_step(trainer, 0, nullptr, nullptr)));
  EXPECT_TRUE(works(st_trainer_digest(trainer, &out)));
  all.digest = out;
  EXPECT_TRUE(works(st_recipe_set(recipe, "beta2", "0.96875")));
  EXPECT_TRUE(works(st_recipe_json(recipe, &out)));
  all.recipe = out;
  EXPECT_TRUE(works(st_trainer_plan(trainer, &out)));
  all.plan = out;
  EXPECT_TRUE(works(st_trainer_explain(trainer, &out)));
  all.explained = out;
  const std::string path = file_of("locale.html", "");
  EXPECT_TRUE(works(st_trainer_write_report(trainer, path.c_str(), nullptr)));
  std::ostringstream page;
  page << std::ifstream(path).rdbuf();
  all.page = page.str();
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_recipe_set(recipe, "beta1", "1.5")));
  all.refusal = st_last_error();
  return all;
}

TEST(Locale, OfTheHostChangesNoNumber) {
  const std::string text = text_file("locale.txt", 3000);
  const Answers plain = answers(text);
  const GermanLocale german;
  if (!german.is_there()) GTEST_SKIP() << "localedef could not make de_DE.UTF-8 here (no localedef, or no locale sources)";
  ASSERT_EQ(printed(0.5), "0,5");
  const Answers foreign = answers(text);
  EXPECT_EQ(printed(0.5), "0,5") << "the host's locale is unchanged";

  EXPECT_EQ(foreign.digest, plain.digest) << "beta1 and the others were parsed correctly";
  EXPECT_EQ(foreign.recipe, plain.recipe);
  EXPECT_EQ(foreign.plan.find("0,"), plain.plan.find("0,"));
  EXPECT_EQ(foreign.refusal, plain.refusal);
  EXPECT_NE(foreign.refusal.find("1.5"), std::string::npos) << foreign.refusal;
  EXPECT_NE(foreign.explained.find(" ms"), std::string::npos);
  for (const std::string* page : {&foreign.explained, &foreign.page})  // times differ between runs, but must not contain a comma
    for (size_t at = page->find(" ms"); at != std::string::npos; at = page->find(" ms", at + 1)) {
      const size_t begin = page->find_last_of(" >", at - 1) + 1;
      EXPECT_EQ(page->substr(begin, at - begin).find(','), std::string::npos) << page->substr(begin, at - begin);
    }
  const auto number_of_paths = [](const std::string& page) {
    size_t count = 0;
    for (size_t at = page.find("<path"); at != std::string::npos; at = page.find("<path", at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(number_of_paths(foreign.page), number_of_paths(plain.page));
  EXPECT_EQ(foreign.page.find("x1=\"66,"), std::string::npos);
}

}  // namespace
