// A plug-in of clang-tidy 14 that keeps its checks out of the headers of others. A check matches every node of a unit's syntax tree and
// drops what it finds in system headers afterwards, but most nodes of a unit are the standard library's.
#include <clang-tidy/ClangTidyCheck.h>
#include <clang-tidy/ClangTidyModule.h>
#include <clang-tidy/ClangTidyModuleRegistry.h>
#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclCXX.h>
#include <clang/ASTMatchers/ASTMatchFinder.h>

#include <cstdint>
#include <set>
#include <vector>

namespace {

using clang::ast_matchers::MatchFinder;

/// The declarations of a unit that checks visit: all that are outside system headers. bugprone-forward-declaration-namespace also needs the
/// classes of others whose names own code declares and does not define.
class Visited {
 public:
  Visited(const clang::TranslationUnitDecl& unit, const clang::SourceManager& sources) {
    std::vector<clang::Decl*> others;
    for (clang::Decl* declaration : unit.decls()) {
      const auto place = sources.getExpansionLoc(declaration->getLocation());
      const bool own = place.isValid() && !sources.isInSystemHeader(place);
      (own ? declarations : others).push_back(declaration);
    }
    for (const clang::Decl* declaration : declarations) take_undefined(declaration);
    for (clang::Decl* declaration : others) visit_undefined(declaration);
  }

  std::vector<clang::Decl*> declarations;

 private:
  void take_undefined(const clang::Decl* declaration) {
    if (const auto* space = llvm::dyn_cast<clang::NamespaceDecl>(declaration)) {
      for (const clang::Decl* inner : space->decls()) take_undefined(inner);
    }
    const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(declaration);
    if (record && record->getIdentifier() && !record->getDefinition()) undefined_.insert(record->getIdentifier());
  }

  void visit_undefined(clang::Decl* declaration) {
    if (const auto* space = llvm::dyn_cast<clang::NamespaceDecl>(declaration)) {
      for (clang::Decl* inner : space->decls()) visit_undefined(inner);
    }
    const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(declaration);
    if (record && undefined_.count(record->getIdentifier())) declarations.push_back(declaration);
  }

  std::set<const clang::IdentifierInfo*> undefined_;
};

// A walk begins with the whole unit and takes the declarations to visit from the context once the unit was matched. With the first of them
// the context gets all of them back, since a check may ask for the ancestors of a declaration of others that own code uses.
class OwnCode : public clang::tidy::ClangTidyCheck {
 public:
  using ClangTidyCheck::ClangTidyCheck;

  void registerMatchers(MatchFinder* finder) override { finder->addMatcher(clang::ast_matchers::decl(), this); }

  void check(const MatchFinder::MatchResult& result) override {
    auto* const unit = result.Context->getTranslationUnitDecl();
    if (++matched_ == 1) result.Context->setTraversalScope(Visited(*unit, *result.SourceManager).declarations);
    if (matched_ == 2) result.Context->setTraversalScope({unit});
  }

 private:
  int64_t matched_ = 0;
};

struct Module : clang::tidy::ClangTidyModule {
  void addCheckFactories(clang::tidy::ClangTidyCheckFactories& checks) override { checks.registerCheck<OwnCode>("scaletrain-own-code"); }
};

const clang::tidy::ClangTidyModuleRegistry::Add<Module> added("scaletrain", "Keeps checks out of the headers of others.");

}  // namespace
