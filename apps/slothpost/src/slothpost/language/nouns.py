"""Nouns of which one needs an article, as far as titles of changes use them, and words around nouns."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLACES = _words(
    "page screen tab view list dashboard sidebar menu toolbar header footer widget editor calendar timeline feed app "
    "site website form dialog modal map chart graph table card panel player timer profile inbox gallery library board "
    "wizard sheet popup pop-up keyboard navbar web console terminal picker grid canvas homepage drawer banner overview "
    "queue forecast diary journal planner server browser database camera watch phone clipboard preview printer"
)
"""Parts of a product that readers know: "the settings page"."""

PLACES_ON = _words(
    "page screen card dashboard toolbar header footer map chart homepage board widget console watch phone navbar cover"
)
"""What something is on, and not in."""

PLACES_IN = PLACES - PLACES_ON | _words("section summary report email settings search digest newsletter notification invoice")

ADVERBS = _words(
    "twice again once back more less better faster slower up down away together offline online early earlier late later "
    "always never often sometimes forever everywhere anymore too still instead apart ahead properly"
)

UNIQUE = _words("sidebar toolbar header footer menu dashboard navbar homepage console feed inbox app site website keyboard")
"""Parts of which a product has one."""

PRONOUNS = _words("it its itself them themselves you your they their him her us me")

FAULTS = _words(
    "crash bug leak error glitch freeze hang race flicker loop issue problem mistake regression typo exception failure "
    "deadlock overflow gap delay conflict"
)

COUNTABLE = (
    PLACES
    | FAULTS
    | _words(
        "button filter shortcut setting option toggle switch icon badge slider field guide tour counter streak reminder "
        "notification alert email digest report summary template theme plan tier trial discount coupon invoice backup plugin "
        "extension bot command language gesture animation sound thumbnail log folder tag label note comment reaction avatar "
        "account role permission team workspace project column row link key limit warning message confirmation flow mode bar "
        "box step recipe photo image file item entry post draft task habit goal plant song chord track route trip spot "
        "session workout book shelf chapter quiz deck question customer client receipt quote estimate payment subscription "
        "product order price webhook monitor incident check region domain portfolio section block gallery footer layout "
        "cover logo signature password code token profile picture version importer exporter generator calculator glossary "
        "changelog newsletter store shop cart checklist score leaderboard challenge level map review rating bookmark clip "
        "video podcast episode playlist event ticket location address contact group day week month year hour minute user "
        "visitor member guest admin cell formula currency unit scale tuner metronome capo tide wave wind swell workflow "
        "engine integration system assistant tool hub area zone space room suite kit pack bundle beta alpha prototype state "
        "change update api api-key redesign series poll survey vote preset ringtone wallpaper sticker emoji collection "
        "smart-list size time speed amount watermark glossary download upload login caption"
    )
)

MASS = _words(
    "support export import sync search undo redo login sign-in sign-up onboarding autocomplete pagination history "
    "localization accessibility navigation content music weather data help feedback progress statistics translation "
    "authentication validation"
)
"""Nouns without an article: "CSV export"."""

NOT_GERUNDS = _words(
    "thing string ring setting building heading landing listing ranking rating recording reading meeting drawing warning "
    "rendering booking spring wing"
)

DETERMINERS = _words(
    "a an the this that these those my your our their its his her all any each every some no more most many several both "
    "two three four five multiple another one"
)

DEFINITE = _words("last first next current previous same correct right whole selected remaining")
"""Adjectives that make a noun definite: "the last filter"."""

INDEFINITE = _words("new single custom separate different specific given fresh second third")
"""Adjectives of something that is not known yet: "a new note"."""

FAULTY = _words(
    "wrong missing incorrect broken duplicate duplicated empty blank slow unreadable invalid stale lost rare occasional"
)
"""Adjectives of faults: "a wrong total"."""

PREPOSITIONS = _words("in on from to into of at for inside across behind below above")

SUBORDINATES = _words("when while after before by without if where")

STOPS = (
    PREPOSITIONS
    | SUBORDINATES
    | _words(
        "with via as and or that which who so not per than between during using but & + is are was were has have can does do "
        "until because instead now no off up through throughout against over under around near towards about among along "
        "except like onto past since until upon within versus vs"
    )
)
"""Words that end a noun."""
