"""Which sequences of code points are one emoji."""

from __future__ import annotations

import re

_JOINER = "\u200d"
_VARIATION = "\ufe0f"  # shows the character before it as an emoji
_KEYCAP = "\u20e3"
_SKIN_TONES = "\U0001f3fb-\U0001f3ff"
_TAGS = "\U000e0020-\U000e007f"

# The emoji of Unicode 11, which twitter-text knows. It counts the parts of sequences that came later.
_TEXT_UNLESS_VARIED = "a9 ae 2122 265f"
_TAKES_VARIATION = (
    "203c 2049 2139 2194-2199 21a9-21aa 231a-231b 2328 23cf 23ed-23ef 23f1-23f2 23f8-23fa 24c2 25aa-25ab 25b6 25c0 25fb-25fe "
    "2600-2604 260e 2611 2614-2615 2618 261d 2620 2622-2623 2626 262a 262e-262f 2638-263a 2640 2642 2648-2653 2660 2663 "
    "2665-2666 2668 267b 267f 2692-2697 2699 269b-269c 26a0-26a1 26aa-26ab 26b0-26b1 26bd-26be 26c4-26c5 26c8 26cf 26d1 "
    "26d3-26d4 26e9-26ea 26f0-26f5 26f7-26fa 26fd 2702 2708-2709 270c-270d 270f 2712 2714 2716 271d 2721 2733-2734 2744 "
    "2747 2757 2763-2764 27a1 2934-2935 2b05-2b07 2b1b-2b1c 2b50 2b55 3030 303d 3297 3299 1f004 1f170-1f171 1f17e-1f17f "
    "1f202 1f21a 1f22f 1f237 1f321 1f324-1f32c 1f336 1f37d 1f396-1f397 1f399-1f39b 1f39e-1f39f 1f3cb-1f3ce 1f3d4-1f3df "
    "1f3f3 1f3f5 1f3f7 1f43f 1f441 1f4fd 1f549-1f54a 1f56f-1f570 1f573-1f579 1f587 1f58a-1f58d 1f590 1f5a5 1f5a8 1f5b1-1f5b2 "
    "1f5bc 1f5c2-1f5c4 1f5d1-1f5d3 1f5dc-1f5de 1f5e1 1f5e3 1f5e8 1f5ef 1f5f3 1f5fa 1f6cb 1f6cd-1f6cf 1f6e0-1f6e5 1f6e9 1f6f0 "
    "1f6f3"
)
_TAKES_SKIN_TONE = (
    "261d 26f7 26f9 270a-270d 1f385 1f3c2-1f3c4 1f3c7 1f3ca-1f3cc 1f442-1f443 1f446-1f450 1f466-1f469 1f46e 1f470-1f478 "
    "1f47c 1f481-1f483 1f485-1f487 1f4aa 1f574-1f575 1f57a 1f590 1f595-1f596 1f645-1f647 1f64b-1f64f 1f6a3 1f6b4-1f6b6 "
    "1f6c0 1f6cc 1f918-1f91c 1f91e-1f91f 1f926 1f930-1f939 1f93d-1f93e 1f9b5-1f9b6 1f9b8-1f9b9 1f9d1-1f9dd"
)
_TAKES_VARIATION_THEN_SKIN_TONE = "261d 26f7 26f9 270c-270d 1f3cb-1f3cc 1f574-1f575 1f590"
_TAKES_GENDER = (
    "1f3c3-1f3c4 1f3ca 1f46e 1f471 1f473 1f477 1f481-1f482 1f486-1f487 1f645-1f647 1f64b 1f64d-1f64e 1f6a3 1f6b4-1f6b6 "
    "1f926 1f935 1f937-1f939 1f93d-1f93e 1f9b8-1f9b9 1f9d6-1f9dd"
)
_TAKES_GENDER_BARE = "1f46f 1f93c 1f9de-1f9df"  # without a skin tone
_TAKES_GENDER_DRESSED = "26f9 1f3cb-1f3cc 1f574-1f575"  # only after a skin tone or the variation selector
_JOBS = "1f33e 1f373 1f393 1f3a4 1f3a8 1f3eb 1f3ed 1f4bb-1f4bc 1f527 1f52c 1f680 1f692 1f9b0-1f9b3"
_JOBS_WITH_VARIATION = "2695-2696 2708"
_FLAGS = (
    "AC AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA "
    "CC CD CF CG CH CI CK CL CM CN CO CP CR CU CV CW CX CY CZ DE DG DJ DK DM DO DZ EA EC EE EG EH ER ES ET EU FI FJ FK FM "
    "FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU IC ID IE IL IM IN IO IQ IR IS IT JE "
    "JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ "
    "MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO "
    "RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TA TC TD TF TG TH TJ TK TL TM TN TO TR TT TV "
    "TW TZ UA UG UM UN US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW"
)
_REGION_FLAGS = "gbeng gbsct gbwls"

_ALWAYS_EMOJI = "23e9-23ec 23f0 23f3 267e 26a7 26ce 2705 2728 270a-270b 274c 274e 2753-2755 2795-2797 27b0 27bf"
_ASTRAL_EMOJI = "1f000-1faff"  # also those to come


def _characters(ranges: str) -> str:
    """Return what stands between the brackets of a character class."""
    return "".join("-".join(chr(int(end, 16)) for end in part.split("-")) for part in ranges.split())


def _flag(country: str) -> str:
    return "".join(chr(0x1F1E6 + ord(letter) - ord("A")) for letter in country)


def _region_flag(region: str) -> str:
    return "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"


def _sequences() -> str:
    joiner, variation, tone = _JOINER, _VARIATION, f"[{_SKIN_TONES}]"
    man, woman, boy, girl = "\U0001f468", "\U0001f469", "\U0001f466", "\U0001f467"
    gender = f"{joiner}[\u2640\u2642]{variation}"
    heart, kiss = f"{joiner}\u2764{variation}{joiner}", f"(?:\U0001f48b{joiner})?"
    parents = f"(?:{man}(?:{joiner}[{man}{woman}])?|{woman}(?:{joiner}{woman})?)"
    children = f"(?:{girl}{joiner}[{boy}{girl}]|{boy}{joiner}{boy}|[{boy}{girl}])"
    flags = (*(_flag(country) for country in _FLAGS.split()), *(_region_flag(region) for region in _REGION_FLAGS.split()))
    return "|".join((
        f"[{man}{woman}]{tone}?{joiner}(?:[{_characters(_JOBS_WITH_VARIATION)}]{variation}|[{_characters(_JOBS)}])",
        f"[{_characters(_TAKES_GENDER_DRESSED)}][{_SKIN_TONES}{variation}]{gender}",
        f"[{_characters(_TAKES_GENDER)}]{tone}?{gender}",
        f"[{_characters(_TAKES_GENDER_BARE)}]{gender}",
        f"{man}{heart}{kiss}{man}|{woman}{heart}{kiss}[{man}{woman}]",
        f"{parents}{joiner}{children}",
        f"\U0001f3f3{variation}{joiner}\U0001f308|\U0001f3f4{joiner}\u2620{variation}|\U0001f441{joiner}\U0001f5e8",
        f"[#*0-9]{variation}?{_KEYCAP}",
        f"[{_characters(_TAKES_VARIATION_THEN_SKIN_TONE)}]{variation}{tone}",
        f"[{_characters(_TAKES_SKIN_TONE)}]{tone}",
        f"[{_characters(f'{_TEXT_UNLESS_VARIED} {_TAKES_VARIATION}')}]{variation}",
        *flags,
    ))  # fmt: skip


def _anything() -> str:
    emoji = _characters(f"{_TAKES_VARIATION} {_ALWAYS_EMOJI} {_ASTRAL_EMOJI}")
    varied = f"[{_characters(_TEXT_UNLESS_VARIED)}]{_VARIATION}"
    return f"[#*0-9]{_VARIATION}?{_KEYCAP}|{varied}|[{emoji}][{emoji}{_JOINER}{_VARIATION}{_TAGS}]*"


SEQUENCE = re.compile(_sequences())
"""An emoji of several code points, as twitter-text knows them; those of one code point need no rule."""

ANY_EMOJI = re.compile(_anything())
"""Emoji of one or more code points, in a row, also later ones."""
