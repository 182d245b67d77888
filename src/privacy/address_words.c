/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address_words.c - the words postal addresses are made of, each list sorted by bytes.
 *
 * "Weak" words mean many other things too: alone with a number they are not enough.
 */
#include "privacy/address_internal.h"

/* after the name: 12 Main Street */
static const char *const strong_last_list[] = {
    "alley",     "aly",        "av",       "ave",      "avenue",  "avenues",  "blvd",
    "boulevard", "boulevards", "causeway", "cir",      "circle",  "close",    "court",
    "cres",      "crescent",   "cswy",     "ct",       "dr",      "drive",    "drives",
    "esplanade", "expressway", "expy",     "freeway",  "fwy",     "gardens",  "highway",
    "hwy",       "lane",       "lanes",    "ln",       "mews",    "motorway", "parade",
    "parkway",   "pkwy",       "pl",       "place",    "rd",      "road",     "roads",
    "sq",        "square",     "st",       "street",   "streets", "ter",      "terrace",
    "tpke",      "trail",      "trl",      "turnpike",
};
const word_list address_strong_last = { strong_last_list, RT_COUNT(strong_last_list) };

/* after the name: 12 Smith Fork */
static const char *const weak_last_list[] = {
    "annex",      "arcade",     "bayou",     "beach",    "bend",       "bluff",     "bluffs",
    "bottom",     "branch",     "bridge",    "broadway", "brook",      "brooks",    "burg",
    "burgs",      "bypass",     "byway",     "camp",     "canyon",     "cape",      "center",
    "centers",    "circles",    "cliff",     "cliffs",   "club",       "common",    "commons",
    "concourse",  "corner",     "corners",   "cottages", "course",     "courts",    "cove",
    "coves",      "creek",      "crest",     "croft",    "crossing",   "crossroad", "curve",
    "dale",       "dam",        "divide",    "drove",    "end",        "estate",    "estates",
    "extension",  "extensions", "fall",      "falls",    "ferry",      "field",     "fields",
    "flat",       "flats",      "ford",      "fords",    "forest",     "forge",     "forges",
    "fork",       "forks",      "fort",      "garden",   "gate",       "gateway",   "glen",
    "glens",      "green",      "greens",    "grove",    "groves",     "grv",       "harbor",
    "harbors",    "haven",      "heights",   "hill",     "hills",      "hollow",    "hts",
    "inlet",      "island",     "islands",   "isle",     "jct",        "junction",  "junctions",
    "key",        "keys",       "knoll",     "knolls",   "lake",       "lakes",     "landing",
    "lea",        "light",      "lights",    "locks",    "lodge",      "loop",      "manor",
    "meadow",     "meadows",    "mill",      "mills",    "mission",    "motorway",  "mount",
    "mountain",   "mountains",  "neck",      "orchard",  "oval",       "overpass",  "park",
    "parks",      "pass",       "passage",   "path",     "pike",       "pine",      "pines",
    "plain",      "plains",     "plaza",     "plz",      "point",      "port",      "ports",
    "prairie",    "promenade",  "pt",        "quay",     "radial",     "ramp",      "ranch",
    "rapid",      "rapids",     "rdg",       "rest",     "ridge",      "rise",      "river",
    "route",      "row",        "rue",       "run",      "shoal",      "shoals",    "shore",
    "shores",     "skyway",     "spring",    "springs",  "spur",       "spurs",     "squares",
    "station",    "stravenue",  "stream",    "summit",   "throughway", "trace",     "track",
    "trafficway", "tunnel",     "underpass", "union",    "unions",     "vale",      "valley",
    "valleys",    "via",        "viaduct",   "view",     "views",      "village",   "villages",
    "ville",      "vista",      "walk",      "walks",    "wall",       "way",       "ways",
    "well",       "wells",      "wharf",     "yard",
};
const word_list address_weak_last = { weak_last_list, RT_COUNT(weak_last_list) };

/* before the name: 12 rue Monge, Calle Mayor 12 */
static const char *const strong_first_list[] = {
    "alameda", "aleja",      "allee",     "allée",   "allées",     "avda",    "avenida",
    "avenue",  "bd",         "boulevard", "bulevar", "bulevardul", "c/",      "calle",
    "camino",  "carrer",     "carretera", "chemin",  "contrada",   "corso",   "esplanade",
    "estrada", "impasse",    "jalan",     "jl",      "lungomare",  "náměstí", "paseo",
    "piazza",  "piazzale",   "plac",      "plaza",   "praça",      "quai",    "rambla",
    "rodovia", "rond-point", "ronda",     "rua",     "rue",        "ruelle",  "salita",
    "sentier", "strada",     "travessa",  "třída",   "ul",         "ulica",   "ulice",
    "viale",   "vicolo",     "voie",      "бульвар", "переулок",   "пр",      "проспект",
    "ул",      "улица",      "шоссе",
};
const word_list address_strong_first = { strong_first_list, RT_COUNT(strong_first_list) };

/* before the name: Via Roma 12 */
static const char *const weak_first_list[] = {
    "al",       "bairro",      "barrio",       "carrera", "cite",      "cité",
    "colonia",  "cours",       "cra",          "côte",    "diagonal",  "faubourg",
    "glorieta", "hameau",      "kr",           "largo",   "lieu-dit",  "lot",
    "lote",     "montée",      "os",           "os.",     "pasaje",    "passage",
    "pl",       "place",       "quinta",       "route",   "résidence", "sector",
    "square",   "transversal", "urbanización", "via",     "villa",     "vía",
};
const word_list address_weak_first = { weak_first_list, RT_COUNT(weak_first_list) };

/* a part of a building */
static const char *const units_list[] = {
    "andar", "ap",      "apartment", "appartement", "appt",     "apt",  "apto",     "bat",
    "bldg",  "block",   "bloco",     "box",         "building", "byt",  "bâtiment", "dept",
    "depto", "dpto",    "esc",       "etage",       "fl",       "flat", "floor",    "hus",
    "int",   "interno", "kat",       "level",       "lgh",      "lot",  "m/s",      "no",
    "of",    "oficina", "piso",      "puerta",      "rm",       "room", "sala",     "scala",
    "ste",   "stiege",  "stock",     "studio",      "suite",    "top",  "tower",    "trlr",
    "unit",  "wohnung", "étage",
};
const word_list address_units = { units_list, RT_COUNT(units_list) };

/* the last word of a country's name */
static const char *const countries_list[] = {
    "africa",     "america",  "argentina", "australia",   "austria",   "belgique",    "belgium",
    "belgië",     "brasil",   "brazil",    "bulgaria",    "canada",    "chile",       "china",
    "colombia",   "croatia",  "czechia",   "danmark",     "denmark",   "deutschland", "egypt",
    "emirates",   "england",  "españa",    "estonia",     "finland",   "france",      "germany",
    "greece",     "hungary",  "india",     "indonesia",   "ireland",   "israel",      "italia",
    "italy",      "japan",    "kenya",     "kingdom",     "korea",     "latvia",      "lithuania",
    "luxembourg", "malaysia", "mexico",    "méxico",      "nederland", "netherlands", "nigeria",
    "norge",      "norway",   "peru",      "philippines", "poland",    "polska",      "portugal",
    "romania",    "russia",   "schweiz",   "scotland",    "singapore", "slovakia",    "slovenia",
    "spain",      "suisse",   "suomi",     "sverige",     "svizzera",  "sweden",      "switzerland",
    "thailand",   "turkey",   "türkiye",   "u.s.a.",      "uae",       "uk",          "ukraine",
    "us",         "usa",      "vietnam",   "wales",       "zealand",   "österreich",
};
const word_list address_countries = { countries_list, RT_COUNT(countries_list) };

/* small words inside names */
static const char *const small_list[] = {
    "af",  "am",    "an",  "auf", "bei", "d'",    "da",   "das", "de",  "degli", "dei",
    "del", "della", "den", "der", "des", "di",    "do",   "dos", "du",  "e",     "el",
    "et",  "het",   "im",  "in",  "l'",  "la",    "las",  "le",  "les", "los",   "of",
    "on",  "sous",  "sur", "the", "und", "unter", "upon", "van", "y",   "zum",   "zur",
};
const word_list address_small = { small_list, RT_COUNT(small_list) };

/* states, provinces and territories, written in capitals */
static const char *const states_list[] = {
    "aa", "ab", "act", "ae",  "ak", "al", "ap",  "ar", "as", "az", "bc", "ca",  "co", "ct",
    "dc", "de", "fl",  "fm",  "ga", "gu", "hi",  "ia", "id", "il", "in", "ks",  "ky", "la",
    "ma", "mb", "md",  "me",  "mh", "mi", "mn",  "mo", "mp", "ms", "mt", "nb",  "nc", "nd",
    "ne", "nh", "nj",  "nl",  "nm", "ns", "nsw", "nt", "nu", "nv", "ny", "oh",  "ok", "on",
    "or", "pa", "pe",  "pr",  "pw", "qc", "qld", "ri", "sc", "sd", "sk", "tas", "tn", "tx",
    "ut", "va", "vi",  "vic", "vt", "wa", "wi",  "wv", "wy", "yt",
};
const word_list address_states = { states_list, RT_COUNT(states_list) };

/* before a number: it is no house's */
static const char *const bans_list[] = {
    "about",   "act",      "almost",  "approximately", "apr",     "april",  "article",  "aug",
    "august",  "chapter",  "class",   "code",          "day",     "dec",    "december", "episode",
    "error",   "exercise", "feb",     "february",      "fig",     "figure", "grade",    "group",
    "http",    "item",     "jan",     "january",       "java",    "jul",    "july",     "jun",
    "june",    "lesson",   "level",   "line",          "mar",     "march",  "month",    "nearly",
    "nov",     "november", "oct",     "october",       "over",    "page",   "part",     "phase",
    "port",    "psalm",    "python",  "question",      "room",    "rule",   "scene",    "season",
    "section", "sep",      "sept",    "september",     "step",    "table",  "than",     "top",
    "under",   "unit",     "version", "week",          "windows", "year",
};
const word_list address_bans = { bans_list, RT_COUNT(bans_list) };

/* between number and street word: it is no street's name */
static const char *const things_list[] = {
    "a",      "an",      "and",    "are",    "as",   "at",    "be",     "by",      "day",
    "days",   "feet",    "files",  "for",    "from", "gb",    "her",    "his",     "hour",
    "hours",  "if",      "in",     "is",     "it",   "items", "kb",     "km",      "lines",
    "mb",     "men",     "meters", "metres", "mile", "miles", "minute", "minutes", "month",
    "months", "my",      "no",     "not",    "of",   "on",    "or",     "our",     "people",
    "per",    "percent", "points", "rows",   "tb",   "that",  "the",    "their",   "this",
    "times",  "to",      "users",  "was",    "week", "weeks", "were",   "which",   "with",
    "women",  "year",    "years",  "your",
};
const word_list address_things = { things_list, RT_COUNT(things_list) };

/* before "drive", "court", "way": something else than a street */
static const char *const gadgets_list[] = {
    "any",     "backup",   "basketball", "best",  "c",     "d",      "disk",  "each",
    "either",  "external", "fast",       "flash", "food",  "google", "hard",  "network",
    "one",     "only",     "other",      "right", "same",  "shared", "solid", "state",
    "supreme", "tape",     "tennis",     "test",  "thumb", "usb",    "wrong",
};
const word_list address_gadgets = { gadgets_list, RT_COUNT(gadgets_list) };

bool privacy_words_have(const word_list *w, rt_str word)
{
    char folded[32];
    size_t len, low = 0, high = w->count;
    if (!privacy_fold(word, folded, sizeof(folded), &len))
        return false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(folded, w->list[middle]);
        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}
