"""The words by which changes are told apart: what users see, what only developers see, and what bots write."""

from __future__ import annotations

import re
from collections.abc import Mapping

from slothpost.model import ActivityKind


def _kinds(**words: str) -> Mapping[str, ActivityKind]:
    kinds: dict[str, ActivityKind] = {"feature": "feature", "fix": "fix", "chore": "chore"}
    return {word.replace("_", " "): kinds[name] for name, some in words.items() for word in some.split()}


def _any_of(alternatives: str) -> str:
    """Return an expression for any of these, which blanks separate. An underscore stands for a blank."""
    return "|".join(alternatives.split()).replace("_", " ")


TYPES = _kinds(
    feature="feat feature features add added new ui ux design enhancement enh improvement improve improved perf "
    "performance a11y accessibility launch",
    fix="fix fixes fixed bugfix bug hotfix security",
    chore="chore chores ci cd build test tests testing docs doc documentation refactor refact style styles lint wip tmp "
    "temp dep deps release merge infra ops devops dev tooling config cleanup clean meta types revert version "
    "internal examples example bench debug misc minor typo",
)
"""What stands before the colon in conventional commits, and in titles like "Fix: …"."""

PERFORMANCE = frozenset({"perf", "performance"})

_MAINTAINED = (
    "ci cd test tests e2e build deps dep deps-dev dev lint types typing docs doc readme infra docker tooling scripts workflow"
)
MAINTAINED_SCOPES = frozenset([*_MAINTAINED.split(), "workflows", "release", "internal", "storybook", "eslint", "config", "repo"])

PLATFORMS: Mapping[str, str] = {
    "ios": "iOS", "ipad": "iPad", "ipados": "iPad", "macos": "Mac", "mac": "Mac", "android": "Android", "windows": "Windows",
    "linux": "Linux", "watchos": "Apple Watch", "watch": "Apple Watch", "tvos": "Apple TV",
}  # fmt: skip
"""Scopes that say where users see it."""

LABELS = _kinds(
    feature="enhancement feature feature_request new_feature type:_feature kind/feature ux ui",
    fix="bug bugfix fix regression type:_bug kind/bug",
    chore="chore dependencies documentation docs internal ci tests test refactor refactoring build maintenance "
    "skip-changelog no-changelog ignore-for-release infra tooling github_actions tech_debt technical_debt wontfix "
    "invalid duplicate",
)

EMOJI = _kinds(
    feature="✨ 🎉 🚸 💄 ⚡ ♿ 🌐 📱 🆕 💫",
    fix="🐛 🚑 🩹 🔒 🥅 🍎 🐧 🏁 🤖 🍏",
    chore="🎨 🔥 📝 ✅ 🔖 🚨 🚧 💚 ⬇ ⬆ 📌 👷 📈 ♻ ➕ ➖ 🔧 🔨 ✏ 💩 ⏪ 🔀 📦 👽 🚚 📄 💡 🗃 🔇 👥 🏗 🤡 🥚 🙈 📸 ⚗ 🏷 🌱 🚩 "
    "🗑 🛂 ⚰ 🧪 👔 🩺 🧱 🧑 💸 🧵",
)
"""Of gitmoji, at the start of a title. A rocket is missing: it stands for deployments, and for features as well."""

SHORTCODES: Mapping[str, str] = {
    "sparkles": "✨", "tada": "🎉", "zap": "⚡", "lipstick": "💄", "iphone": "📱", "bug": "🐛", "ambulance": "🚑", "lock": "🔒",
    "adhesive_bandage": "🩹", "art": "🎨", "fire": "🔥", "memo": "📝", "white_check_mark": "✅", "bookmark": "🔖",
    "rotating_light": "🚨", "construction": "🚧", "green_heart": "💚", "arrow_up": "⬆", "arrow_down": "⬇", "pushpin": "📌",
    "construction_worker": "👷", "recycle": "♻", "wrench": "🔧", "hammer": "🔨", "pencil2": "✏", "rewind": "⏪", "package": "📦",
    "truck": "🚚", "bulb": "💡", "wastebasket": "🗑", "coffin": "⚰", "test_tube": "🧪", "label": "🏷", "heavy_plus_sign": "➕",
}  # fmt: skip

PULL_REQUEST_MERGE = re.compile(r"Merge pull request #\d+ from \S+$")

_VERSION = r"\^?~?v?\d"
_VAGUE = (
    "fix(?:es|ed)? update[sd]? changes? stuff work save commit test cleanup tweaks? typos? oops nits? temp tmp asdf\\w* "
    "misc done more progress improvements? refactor(?:ing)? bug_?fix(?:es)? edits? debug backup sync hotfix"
)
NOISE = re.compile(
    "|".join((
        r"merged? (?:(?:remote-tracking )?branch|branches|pull request|pr\b|tag|commit|remote|master|main|develop|upstream)",
        r"wip\b|fixup!|squash!|amend!|revert\b|reapply\b|cherry.?pick|initial commit|first commit|init$|start(?:ed)? project",
        r"release v?\d|(?:publish(?:ed)?|version|new version:?) v?\d|v?\d+\.\d+(?:\.\d+)?\S*$|version bump",
        rf"(?:bump|upgrade|update|downgrade|pin|renovate)\b.* (?:from|to) {_VERSION}|bump\b",
        r"update (?:dependency|dependencies|deps|all|non-major|rust crate|go module|actions/|github|docker|submodules?|lock)",
        r"lock file maintenance|\[?(?:snyk|imgbot|pre-commit\.ci|allcontributors|dependabot|renovate)\b",
        r"auto(?:matic(?:ally)?)?[- ](?:update|generated?|commit|fix|format|merge)",
        r"apply (?:suggestions?|fixes|patch)|address (?:review|feedback|comments?|pr)",
        r"(?:pr|code review|review) (?:feedback|comments?|fixes)",
        rf"prepare (?:for )?(?:release|next|{_VERSION})|prep\b|chore\b|setup\b|set up (?:ci|project|repo)",
        r"(?:small|minor|misc|various|more|some|other|little|tiny|quick) "
        r"(?:fix(?:es)?|changes?|updates?|tweaks?|improvements?|stuff|work|clean ?ups?|edits?|things?)\b",
        rf"(?:{_any_of(_VAGUE)})[.! ]*$",
        r"try(?:ing)? (?:again|to fix|another)|another (?:try|attempt|fix)",
        r"(?:first|initial|inital) (?:pass|attempt|draft|version)",
        r"tests? (?:for|of|that)\b|pin (?:versions?|node|python|ruby|dependenc\w+|deps|actions?)\b",
        r"trigger (?:build|deploy|ci|redeploy)|(?:re)?deploy(?:ment)?\b|empty commit",
    )),
    re.IGNORECASE,
)  # fmt: skip
"""How titles begin that are never told: merges, reverts, bots, placeholders."""

_TOOLS = (
    "eslint prettier ruff flake8 mypy pylint rubocop swiftlint swiftformat ktlint clippy rustfmt gofmt biome "
    "lint(?:er|ers|ing)? typings? tsconfig git_?ignore editorconfig pre-?commit husky codeowners lock_?files? "
    "node.modules package\\.json pyproject podfile gemfile cargo\\.toml webpack rollup babel vite turbopack gradle "
    "makefile cmake docker(?:file)? docker-compose kubernetes k8s helm terraform ansible github_actions? circle_?ci "
    "travis jenkins gitlab_ci storybook jsdoc xcodeproj pbxproj provisioning fastlane code_?signing "
    "xcode_(?:project|settings|warnings) ci ci/cd"
)
_TESTS = (
    "unit_tests? integration_tests? e2e end-to-end_tests? test_fixtures? seed_data code_coverage "
    "test_(?:suite|cases?|coverage|data|helpers?|utils?|runner|setup|fixtures?|files?|env\\w*|plan) "
    "(?:add(?:s|ed|ing)?|write|fix|update|more|some|few|missing|failing|flaky|broken|skip|improve|extend|regression|snapshot|smoke|ui)_tests?(?!\\s+(?:mode|drive|prep|score|result))"
)
_CODE = (
    "type_?(?:checks?|checking|errors?|hints?|annotations?|safety) typescript_errors? (?:dev_?)?dependenc(?:y|ies) "
    "(?:dev_)?deps code_?style code_quality code_comments? dead_code unused$ boilerplate scaffold(?:ing)? console\\.log "
    "console_logs? "
    "unused_(?:\\w+_)?(?:code|imports?|variables?|files?|functions?|deps|params?|props|styles|assets|classes|methods|types?) "
    "print_statements? debug_(?:logs?|logging|statements?|output|code) merge_conflicts? rebase whitespace indentation "
    "trailing_(?:spaces?|newlines?) line_endings semicolons? "
    "(?:locali[sz]ations?|translations?|strings)_(?:updates?|updated|fix(?:es)?) (?:fixes|tweaks|adjustments)$ typos? "
    "spelling code_?formatting formatting$ flaky dev_(?:tools?|mode|settings|server|env\\w*) import(?:s)?_order "
    "sort_imports (?:variable|class|function|method)_names? docstrings? stack_?trace monorepo submodules? feature_flags? "
    "fixme skeleton_code "
    "(?:ci|cd|build|release|deploy|test|lint|github)_(?:workflow|pipeline|job|script|config|matrix|cache|step|action)s? "
    "build_(?:errors?|failures?|settings|number|script) fix(?:es|ed)?_(?:the_)?build compile(?:r)?_(?:errors?|warnings?) "
    "(?:compiler|build|deprecation)_warnings? database_(?:index|indexes|schema) "
    "env(?:ironment)?_(?:vars?|variables?|file)"
)
INTERNAL = re.compile(rf"\b(?:{_any_of(f'{_TOOLS} {_TESTS} {_CODE}')})(?:\b|$)", re.IGNORECASE)
"""Words of what only developers see, whatever the change calls itself."""

_MOSTLY_CODE = (
    "readme changelog docs? documentation "
    "(?:add|error|debug|request|structured|verbose|extra|console|server|audit)_logging logger error_(?:tracking|logging) "
    "sentry posthog plausible google_analytics (?:analytics|metrics|monitoring)$ telemetry health_?checks? sitemap "
    "robots meta_tags? og_(?:image|tags?) favicon seo license funding issue_templates? pull_request_templates? config "
    "constants? enum refactor(?:ing|ed)? cleanup clean_up restructure reorgani[sz]e helpers? utils? utilit(?:y|ies) "
    "middleware hooks? reducers? migrations? state_management dependency_injection api_(?:client|layer|types?) "
    "endpoints? view_?models? protocols? db schema orm sql mocks? "
    "(?:old|legacy|deprecated|obsolete|redundant|leftover|temporary) query_builder stub(?:s|bed)? legal privacy_policy "
    "terms_of_service imprint cookie_banner"
)
USUALLY_INTERNAL = re.compile(rf"\b(?:{_any_of(_MOSTLY_CODE)})(?:\b|$)", re.IGNORECASE)
"""Words of what mostly only developers see. They decide unless the change calls itself a feature or a fix."""

_SMALL = (
    "improvements$ padding margins? spacing hover borders? placeholders? loading_states? skeletons? empty_states? "
    "tooltips? validation error_messages? icons? colou?rs? fonts? alignment shadow z-index opacity wording copy_?text "
    "labels? aria alt_texts? contrast scroll_?bars? transitions? rounded line_height truncat\\w+ ellipsis divider footer"
)
SMALL = re.compile(rf"\b(?:{_any_of(_SMALL)})(?:\b|$)", re.IGNORECASE)

_SYMPTOMS = (
    "crash\\w* freez\\w* hang(?:s|ing)? stuck slow\\w* lost los(?:e|es|ing) disappear\\w* missing wrong\\w* "
    "incorrect\\w* duplicat\\w* twice double empty blank (?:black|white)_screen never broken fail\\w* can(?:no|')t "
    "not_(?:work|sav|show|updat|load|send|sync)\\w* doesn'?t didn'?t drain\\w* battery leak\\w* data_loss time_?zones? "
    "offline log(?:ged)?_out overlap\\w* flicker\\w* jump\\w* unreadable rotated upside_down cut_off misplaced "
    "misaligned invisible hidden unresponsive ignored stale outdated unable too_(?:early|late|often|long|small|big)"
)
SYMPTOM = re.compile(rf"\b(?:{_any_of(_SYMPTOMS)})\b", re.IGNORECASE)
"""What users have noticed."""

_TECHNICAL = (
    "null_?pointer null undefined nil exceptions? stack mutex race_conditions? deadlock thread\\w* async await promises? "
    "callbacks? closures? regex\\w* parser serializ\\w+ deserializ\\w+ encoder decoder buffer socket payload cors csrf "
    "jwt ssr hydration props? state context selector dom css scss tailwind html json yaml xml graphql grpc protobuf "
    "redis postgres\\w* sqlite mongo\\w* prisma cron lambda s3 cdn dns ttl uuid hash enum struct generic typed wrapper "
    "factory singleton controller service repository module namespace binary compiler runtime server_?side backend "
    "back-end frontend front-end web_?pack bundle chunk polyfill dispatch event_loop memoiz\\w+ debounc\\w+ throttl\\w+ "
    "invalidat\\w+ cache caching retry_logic timeouts? idempoten\\w+"
)
TECHNICAL = re.compile(rf"\b(?:{_any_of(_TECHNICAL)})\b", re.IGNORECASE)
"""Words that tell people who use a product little."""
