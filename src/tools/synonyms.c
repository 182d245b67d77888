/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synonyms.c - everyday words and tool words: who asks for "a picture of my screen" wants
 * "take_screenshot".
 *
 * Four tables, written by hand from how people ask and how tools are described. Words of a group
 * stand for each other; a hint leads from the word of a request to words of tools and not back
 * ("umbrella" asks for the weather, "weather" does not ask for an umbrella); a phrase adds words
 * when its own come in a row; chatter is what requests are made of besides the wish itself. All
 * words go through the stemmer when the tables are first used, so any form of a word is enough.
 */
#include "tools/search_internal.h"

#include <pthread.h>
#include <stdlib.h>

static const char stop_words[] = " a an the this that these those there here of to in on at by for "
                                 "from with into onto upon as is are"
                                 " was were be been being am do does did doing done have has had "
                                 "having will would shall should can"
                                 " could may might must it its itself i im ive id ill me my mine "
                                 "myself we us our ours you your yours he"
                                 " him his she her hers they them their theirs who whom whose "
                                 "which what whats when where why how and"
                                 " or but if then than so such not no nor dont doesnt didnt cant "
                                 "isnt arent wont too very just also"
                                 " both each any all some about between during while because since "
                                 "until over under again once only own"
                                 " same other others out off up down let lets thats theres heres "
                                 "please thanks thank hi hello hey ok okay"
                                 " well oh via per etc eg ie s t re ve ll d m within without "
                                 "across after before using used use uses"
                                 " provide provides provided given returns return allows allow "
                                 "enables enable able based specified"
                                 " specific various certain whether either ";

/* What is left of a request's politeness and story; a tool's text may still mean it. */
static const char chatter_words[] =
    "want need like would love help know tell give show find get see look looking want wanna gonna "
    "try trying"
    " think thinking wonder wondering interested interest curious currently recently today "
    "tomorrow tonight"
    " yesterday now soon later week weekend month year day morning evening friend friends family "
    "mom dad"
    " mother father brother sister wife husband kid kids daughter son cousin uncle aunt colleague "
    "boss team"
    " company business client customer project presentation party birthday anniversary wedding "
    "make sure"
    " really actually maybe perhaps possible quickly quick easily easy best good great nice cool "
    "awesome"
    " amazing new latest more most lot lots much many thing things something anything everything "
    "someone"
    " anyone people person way ways additionally furthermore moreover first second third finally "
    "lastly next"
    " start started planning plan going go come take put keep right going able kindly assist "
    "assistance"
    " provide suggest suggestion suggestions recommend recommendation recommendations information "
    "info detail"
    " details relevant related useful interesting popular favorite favourite different available "
    "including"
    " include includes name names number specific exactly basically stuff etc bit little big huge "
    "own"
    " work working organize organizing host hosting attend attending research researching write "
    "writing"
    " explore learn check could example examples user users tool tools api apis data request";

typedef struct table {
    float weight;
    const char *const *rows;
    size_t count;
} table;

/* What is done: kept apart from things, since every tool does something. */
static const char *const verbs[] = {
    "send deliver dispatch transmit forward",
    "send post publish share",
    "mail email",
    "get fetch retrieve obtain read pull load",
    "get show view display see",
    "list enumerate browse index show",
    "search find query lookup discover locate seek",
    "delete remove erase drop destroy discard purge clear trash",
    "create make add new generate build insert",
    "create open start register",
    "update edit modify change alter revise set patch adjust",
    "update refresh sync",
    "rename relabel move",
    "move transfer relocate shift",
    "copy duplicate clone replicate fork",
    "upload push put store save attach import",
    "save store write keep persist",
    "write append compose draft",
    "download fetch pull export grab",
    "export dump extract",
    "import load ingest",
    "run execute invoke launch trigger start",
    "start launch begin boot resume",
    "stop halt terminate kill end cancel shutdown abort",
    "cancel revoke void undo",
    "undo revert rollback restore reset",
    "restart reboot reload",
    "pause suspend hold",
    "convert transform translate change turn",
    "calculate compute work figure determine evaluate estimate",
    "compare diff contrast difference versus",
    "check verify validate test confirm inspect examine ensure",
    "check monitor track watch observe follow",
    "analyze analyse inspect examine assess evaluate study",
    "summarize summarise digest condense abstract shorten overview recap",
    "explain describe clarify elaborate define",
    "translate interpret localize",
    "merge combine join unite concatenate",
    "split divide separate break cut slice",
    "sort order rank arrange",
    "filter select narrow",
    "count number total tally quantity",
    "subscribe follow watch",
    "unsubscribe unfollow",
    "approve accept authorize allow grant permit confirm",
    "reject deny decline refuse block",
    "block ban mute",
    "assign allocate delegate",
    "invite add",
    "join enter attend",
    "leave quit exit",
    "reply respond answer",
    "comment reply note remark",
    "schedule plan book arrange reserve",
    "book reserve",
    "buy purchase order shop acquire",
    "sell",
    "pay charge bill",
    "refund reimburse",
    "lock freeze",
    "encrypt cipher secure protect",
    "decrypt decipher unlock",
    "encode",
    "decode parse",
    "parse extract read",
    "compress zip shrink archive reduce optimize minify",
    "decompress unzip extract unpack",
    "format beautify prettify lint",
    "render draw plot visualize chart paint",
    "design draw create",
    "click press tap",
    "type fill enter input",
    "scroll swipe",
    "navigate open visit goto browse",
    "scrape crawl extract harvest",
    "deploy release publish ship rollout",
    "install setup",
    "uninstall remove",
    "configure setup set customize",
    "enable activate on",
    "disable deactivate off",
    "connect link attach bind",
    "disconnect unlink detach",
    "notify alert remind warn ping inform",
    "log record track",
    "identify recognize detect classify",
    "detect find spot discover",
    "predict forecast",
    "recommend suggest advise propose",
    "improve enhance optimize boost upgrade",
    "fix repair solve resolve correct debug",
    "close resolve finish complete",
    "complete finish done",
    "review check inspect",
    "rate score review grade rank",
    "vote poll",
    "like favorite star heart",
    "play stream listen",
    "watch view stream",
    "listen hear",
    "speak say talk narrate",
    "call dial ring phone",
    "chat talk converse message",
    "learn study teach",
    "practice train exercise",
    "rewrite paraphrase rephrase reword",
    "proofread grammar spelling",
    "shorten",
    "crop trim cut",
    "resize scale",
    "rotate turn flip",
    "remove strip",
    "generate produce synthesize",
    "randomize shuffle random",
    "simulate model",
    "backup snapshot archive",
    "mount attach",
    "grant give",
    "login signin authenticate logon",
    "logout signout",
    "register signup enroll",
    "redeem claim",
    "hire recruit",
    "migrate transfer move port",
    "replace substitute swap",
    "replace edit",
    "print output",
    "measure gauge",
    "reach contact",
    "submit send file",
    "collect gather aggregate compile",
    "group cluster categorize classify bucket",
    "label tag annotate mark",
    "highlight mark",
    "hide mask conceal",
    "navigate route direct",
    "travel go",
    "cook prepare bake",
    "eat dine",
    "drive travel",
    "order request",
    "donate give",
    "invest trade",
    "borrow lend loan",
};

/* What it is about. */
static const char *const things[] = {
    "email mail message inbox gmail mailbox",
    "message sms text dm",
    "message chat conversation channel thread",
    "channel room",
    "call phone telephone",
    "picture image photo photograph pic jpeg png",
    "screenshot screen capture snapshot",
    "illustration drawing artwork art painting image",
    "icon logo emoji",
    "video clip movie footage youtube",
    "movie film cinema imdb",
    "show series tv television episode",
    "song music track audio tune",
    "artist musician band singer",
    "album record",
    "playlist queue",
    "lyrics words",
    "sound audio noise voice recording",
    "speech voice spoken tts",
    "transcript transcription transcribe subtitle caption",
    "podcast episode audio",
    "game gaming play videogame",
    "joke humor funny meme",
    "quote quotation saying",
    "story tale narrative fiction",
    "news headline article press story",
    "article post blog page",
    "book novel ebook isbn",
    "paper publication article study research preprint",
    "citation reference bibliography",
    "author writer",
    "document doc file paper",
    "file document attachment",
    "folder directory",
    "path location",
    "pdf document",
    "spreadsheet excel sheet xlsx workbook",
    "slide presentation powerpoint deck pptx",
    "table spreadsheet",
    "row record entry",
    "column field attribute property",
    "csv spreadsheet",
    "chart graph plot diagram visualization",
    "report summary",
    "dashboard report",
    "weather forecast temperature climate meteorology",
    "rain precipitation rainfall",
    "temperature heat",
    "air pollution quality aqi",
    "earthquake seismic quake",
    "sun sunrise sunset solar",
    "moon lunar",
    "planet astronomy space star",
    "map location geography",
    "address location street postal",
    "zip zipcode postal postcode",
    "place location venue spot poi",
    "coordinate latitude longitude geolocation gps geocode",
    "direction route navigation path",
    "distance far mileage",
    "traffic congestion",
    "city town",
    "country nation",
    "state province region",
    "flight airline plane airfare air",
    "airport airline",
    "hotel lodging accommodation stay room resort motel hostel",
    "rental airbnb lease rent",
    "train rail railway",
    "bus transit transport",
    "car vehicle automobile auto",
    "trip travel vacation holiday journey itinerary tour",
    "destination attraction sightseeing",
    "restaurant dining eatery cafe food",
    "recipe dish meal cooking cuisine",
    "food meal nutrition",
    "ingredient food",
    "drink beverage cocktail",
    "beer brewery",
    "wine",
    "nutrition calorie diet macro",
    "workout exercise fitness gym training",
    "health medical healthcare",
    "doctor physician clinician",
    "patient",
    "disease illness condition symptom diagnosis",
    "medicine drug medication pharmaceutical prescription",
    "money cash fund finance",
    "price cost rate quote",
    "currency exchange forex money",
    "stock share equity ticker",
    "market exchange",
    "crypto cryptocurrency bitcoin coin token ethereum",
    "wallet balance",
    "blockchain chain onchain",
    "transaction payment transfer",
    "payment charge checkout stripe paypal",
    "invoice bill",
    "subscription plan membership",
    "discount coupon deal promo offer sale voucher",
    "order purchase",
    "product item goods merchandise",
    "shop store ecommerce retail marketplace",
    "cart basket",
    "shipping shipment delivery parcel package tracking",
    "inventory stock",
    "bank account",
    "loan mortgage credit",
    "tax vat",
    "salary wage pay compensation",
    "budget expense spending",
    "revenue sales income earnings",
    "company business firm organization corporation enterprise",
    "organization org",
    "customer client consumer",
    "lead prospect contact",
    "contact person",
    "user account profile member",
    "profile bio",
    "employee staff worker",
    "job career vacancy employment position",
    "resume cv",
    "team group",
    "meeting appointment event calendar call",
    "calendar schedule agenda event",
    "event concert show",
    "event meeting",
    "reminder alarm notification",
    "task todo ticket issue item",
    "ticket issue case jira",
    "issue bug problem defect",
    "project board workspace",
    "sprint milestone",
    "note memo",
    "comment remark",
    "knowledge memory fact",
    "entity node",
    "relation edge relationship",
    "repository repo codebase project",
    "commit change revision",
    "branch ref",
    "pull merge pr",
    "code source program script snippet",
    "function method",
    "error exception failure bug",
    "log trace event",
    "test testing",
    "build pipeline ci workflow",
    "workflow automation pipeline",
    "deployment release",
    "version release",
    "package library dependency module",
    "plugin extension addon",
    "container docker image",
    "cluster kubernetes",
    "pod container",
    "server host machine instance vm",
    "service deployment",
    "cloud aws azure gcp",
    "database db sql table",
    "query sql",
    "schema structure",
    "cache redis",
    "key secret credential token",
    "password credential passphrase",
    "permission access role privilege",
    "website site webpage page web url",
    "link url hyperlink",
    "domain hostname whois dns",
    "ip address network",
    "browser chrome web",
    "tab window page",
    "button element",
    "form field",
    "search google web internet online",
    "internet web online",
    "wikipedia encyclopedia wiki",
    "definition meaning dictionary",
    "word vocabulary term",
    "synonym thesaurus",
    "language translation tongue",
    "text string",
    "grammar spelling",
    "sentiment emotion opinion mood",
    "keyword seo",
    "summary abstract overview",
    "question answer quiz",
    "quiz trivia",
    "math calculator arithmetic equation",
    "number numeric integer",
    "average mean",
    "statistics stats statistical metrics analytics",
    "metric measure",
    "unit measurement",
    "time clock timezone date",
    "date day",
    "timezone time",
    "holiday vacation",
    "color colour",
    "font typography",
    "qr barcode code",
    "hash checksum digest",
    "random",
    "team club",
    "score result",
    "match game fixture",
    "football soccer",
    "league tournament competition",
    "player athlete",
    "sport sports",
    "horoscope astrology zodiac tarot",
    "name",
    "baby child",
    "pet animal dog cat",
    "plant flower garden",
    "house home property estate realty",
    "apartment rental property",
    "law legal attorney lawyer",
    "contract agreement",
    "court lawsuit case",
    "course class lesson tutorial education",
    "school university college education",
    "student learner",
    "exam test",
    "gift present",
    "fashion clothes outfit clothing apparel",
    "social media",
    "tweet twitter",
    "post status",
    "follower audience",
    "hashtag tag",
    "comment review",
    "review rating feedback",
    "subreddit reddit",
    "influencer creator",
    "advertisement ad campaign marketing",
    "newsletter campaign",
    "device phone mobile smartphone",
    "sensor device",
    "light lamp bulb",
    "thermostat temperature heating",
    "smart home",
    "camera photo",
    "model ai llm",
    "prompt instruction",
    "chatbot assistant bot",
    "ai gpt intelligence",
    "vector embedding",
    "image vision ocr",
    "face facial",
    "object thing",
    "dataset data",
    "vulnerability security cve",
    "malware virus threat",
    "spam phishing",
    "backup copy",
    "storage bucket disk",
    "memory ram",
    "process job task",
    "terminal shell command bash console",
    "environment env",
    "setting config configuration preference option",
    "variable env",
    "template boilerplate",
    "diagram mermaid flowchart",
    "mindmap outline",
    "idea brainstorm",
    "thought thinking reasoning",
    "step plan",
    "gene genome dna",
    "protein molecule compound",
    "chemical compound chemistry",
    "satellite nasa",
    "vin vehicle",
    "gas fuel petrol",
    "electricity energy power",
    "carbon emission co2",
    "charity nonprofit donation",
    "immigration visa",
    "government public",
    "politics election vote",
    "crime police",
    "church bible religion",
};

/* From a request's words to those of tools. */
static const char *const hints[] = {
    "umbrella raincoat jacket coat sunny cloudy windy storm snow rainy hot cold outside: weather "
    "forecast",
    "degrees celsius fahrenheit humidity: weather temperature convert unit",
    "hungry dinner lunch breakfast eat: restaurant food recipe meal",
    "cook cooking kitchen bake fridge vegetarian vegan: recipe ingredient meal food",
    "thirsty: drink cocktail",
    "song singer band sing concert listen: music track artist",
    "concert gig festival: event ticket music",
    "film actor actress director oscar netflix cinema theater: movie show",
    "binge episode season: tv show series",
    "sick fever headache pain symptom: health medical symptom diagnosis",
    "pill dose pharmacy: drug medication",
    "lose weight diet healthy: fitness nutrition workout health",
    "gym run running muscle: workout fitness exercise",
    "fly flying plane: flight airport",
    "airport layover airline: flight",
    "trip vacation visit holiday travel abroad honeymoon: travel hotel flight attraction itinerary",
    "stay night sleep: hotel accommodation",
    "drive driving commute road: route direction traffic map",
    "far near nearby close around: distance location place nearby",
    "lost where: location map",
    "dollar dollars euro euros usd eur yen pound pounds bucks: currency exchange price convert",
    "worth cost price expensive cheap much afford: price cost",
    "cheap cheapest deal bargain discount: price coupon deal discount",
    "invest investing investment portfolio shares: stock market finance",
    "apple tesla microsoft amazon nvidia google: stock company",
    "bitcoin btc ethereum eth dogecoin solana: crypto cryptocurrency coin price",
    "debt mortgage loan interest: loan finance calculator",
    "rich earn savings retire: finance investment",
    "apartment condo flat bedroom house realtor zillow: property estate listing rent",
    "hire hiring job jobs career unemployed interview: job resume recruit",
    "lawyer sue court attorney: legal law",
    "gift gifts present christmas valentine: gift product shopping",
    "shoes dress clothes wear outfit laptop headphones: product shopping",
    "buy shopping amazon walmart ebay: product shop price",
    "package parcel arrive shipped: shipment tracking delivery",
    "homework essay assignment exam: education study writing",
    "learn lesson tutor course: course education learning",
    "spanish french german japanese chinese italian korean english portuguese: language translate "
    "translation",
    "say pronounce mean: translate definition word",
    "typo misspelled proofread: grammar spelling",
    "essay blog copy caption slogan: write content text generate",
    "joke laugh funny bored: joke game entertainment",
    "bored: game activity",
    "horoscope aries taurus gemini leo virgo libra scorpio sagittarius capricorn aquarius pisces: "
    "horoscope zodiac",
    "dog puppy kitten cat: pet animal",
    "team score won nba nfl mlb nhl premier playoffs: sport match game league",
    "basketball baseball football soccer tennis cricket golf hockey formula: sport match score",
    "colleague coworker teammate boss: team user message slack",
    "remind forget remember: reminder task note memory",
    "remember recall: memory note store",
    "meet meeting appointment tomorrow monday tuesday wednesday thursday friday noon pm am: "
    "calendar event schedule",
    "busy free availability: calendar availability schedule",
    "inbox unread: email message",
    "text: sms message",
    "bug crash broken failing: issue error",
    "sprint backlog story epic kanban: issue ticket board project",
    "merge pr reviewer: pull request",
    "repo github gitlab: repository",
    "committed: commit",
    "deploy prod production staging: deployment release",
    "down outage slow latency: status monitor health metric uptime",
    "pods namespace kubectl: kubernetes pod",
    "container image dockerfile: docker",
    "sql postgres mysql table rows: database query",
    "ec2 s3 lambda aws: aws instance bucket",
    "webpage website site html link url: url page web fetch",
    "google internet online web: search web",
    "spreadsheet excel cells: sheet",
    "slides deck powerpoint: presentation slide",
    "photo picture image selfie background: image photo",
    "draw paint artwork: image generate",
    "scan scanned handwritten: ocr text image",
    "record microphone spoken: audio transcription speech",
    "aloud narrate voiceover: speech voice tts",
    "mp3 wav: audio",
    "mp4 youtube: video",
    "password login: credential authentication password",
    "hacked leaked breach: security breach",
    "suspicious scam phishing: security malware url",
    "star stars telescope orbit mars: astronomy space nasa",
    "earthquake tsunami volcano: earthquake disaster",
    "tide surf beach wave: tide marine",
    "pregnant baby: health baby",
    "depressed anxious stress meditation sleep: mental health meditation",
    "president senator election congress parliament: government election politics",
    "latest happening breaking: news",
    "celebrity famous: celebrity person news",
    "paper papers research scientific journal: paper article academic scholar",
    "history historical: history fact",
    "who: person user",
    "popular trending viral: trending popular",
    "lightbulb lights thermostat: home device light",
    "electric charger ev: charging station vehicle",
    "license plate: vehicle",
    "cheapest compare: price comparison",
    "competitor competitors traffic ranking: seo keyword analytics domain",
    "customer lead deal pipeline crm: crm contact deal",
    "receipt expense: expense invoice receipt",
    "average median sum: statistics calculate",
    "plus minus times divided percent percentage square root: calculate math",
    "equation integral derivative solve: math equation solve",
    "kilometers miles kilograms pounds meters feet inches liters gallons ounces: unit convert",
    "hours clock zone: time timezone",
    "dice coin flip lottery: random",
    "color hex rgb palette: color",
    "everything: list all",
    "anymore: delete remove cancel",
    "rid: delete remove",
    "behalf: user",
    "folder: directory file",
    "inside contents content: read content",
    "biggest largest smallest size: size info",
    "changed difference: diff",
    "wrong: error",
    "available installed: list",
    "logged: log",
    "jot down: note",
};

/* Words in a row, and what they add to the request. */
static const char *const phrases[] = {
    "look up=search",
    "looking for=search",
    "sign up=register",
    "log in=login",
    "sign in=login",
    "get rid=delete",
    "take down=delete",
    "turn off=disable switch",
    "turn on=enable switch",
    "switch off=disable",
    "switch on=enable",
    "shut down=stop",
    "set up=create configure",
    "write down=note create",
    "jot down=note create",
    "put together=create",
    "how many=count number",
    "how much=price cost",
    "how far=distance",
    "how long=duration time",
    "how hot=weather temperature",
    "how cold=weather temperature",
    "how tall=height",
    "how old=age",
    "what time=time timezone",
    "right now=current",
    "going on=news event",
    "in town=local event",
    "near me=nearby location",
    "close by=nearby location",
    "let know=notify message send",
    "get hold=contact",
    "reach out=contact message",
    "catch up=summary news",
    "sum up=summarize",
    "boil down=summarize",
    "read out=speech",
    "read aloud=speech",
    "text message=sms",
    "phone number=phone",
    "real estate=property",
    "air quality=pollution",
    "exchange rate=currency",
    "pull request=pull",
    "web page=webpage page",
    "to do=todo task",
    "who is=person",
    "who wrote=author",
    "get to=route direction",
    "way to=route direction",
    "night out=restaurant bar event",
    "night sky=astronomy",
    "fill in=fill",
    "fill out=fill form",
    "back up=backup",
    "clean up=delete clear",
    "check out=view",
    "make sense=explain",
    "stand for=definition",
    "put off=postpone reschedule",
    "push back=reschedule update",
    "call off=cancel",
    "hand over=assign transfer",
    "put in=add insert",
    "hang out=place event",
    "keep track=track monitor",
    "keep eye=monitor watch",
    "side by=compare",
    "picture of=image photo",
    "number of=count",
    "list of=list",
    "step by=step",
};

static const table tables[] = {
    { 0.35f, verbs, RT_COUNT(verbs) },
    { 0.5f, things, RT_COUNT(things) },
};

static const float HINT = 0.4f, PHRASE = 0.6f, CHATTER = 0.25f;

/* -- Looking up ----------------------------------------------------------------------------------
 */

typedef struct link {
    rt_str stem;
    float weight;
    uint32_t next; /* 0: the last one */
} link;

typedef struct entry {
    rt_str stem;
    uint32_t first; /* of its links */
    bool is_stop, is_chatter;
} entry;

enum { SLOTS = 8192, LINKS_MAX = 1 << 15 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static entry slots[SLOTS];
static link *links;
static uint32_t link_count = 1;
static rt_arena words; /* for the life of the program */

static entry *slot_of(rt_str stem)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < stem.len; i++)
        h = (h ^ (unsigned char)stem.ptr[i]) * 16777619u;
    for (h %= SLOTS; slots[h].stem.ptr && !rt_str_eq(slots[h].stem, stem);)
        h = (h + 1) % SLOTS;
    return &slots[h];
}

static entry *claim(rt_str stem)
{
    entry *e = slot_of(stem);
    e->stem = e->stem.ptr ? e->stem : stem;
    return e;
}

static rt_str stem_of(rt_str word)
{
    char *text = rt_arena_copy(&words, word);
    return (rt_str){ text, search_stem(text, word.len) };
}

static void add_link(rt_str from, rt_str to, float weight)
{
    entry *e = claim(from);
    if (rt_str_eq(from, to) || link_count == LINKS_MAX)
        return;
    for (uint32_t i = e->first; i; i = links[i].next)
        if (rt_str_eq(links[i].stem, to)) {
            links[i].weight = RT_MAX(links[i].weight, weight);
            return;
        }
    links[link_count] = (link){ .stem = to, .weight = weight, .next = e->first };
    e->first = link_count++;
}

static size_t split(rt_str row, rt_str *out, size_t max)
{
    size_t count = 0;
    rt_str word;
    while (count < max && rt_str_cut(&row, ' ', &word))
        if (word.len > 0)
            out[count++] = stem_of(word);
    return count;
}

enum { ROW_MAX = 128 };

static void add_group(rt_str row, float weight)
{
    rt_str stems[ROW_MAX];
    size_t count = split(row, stems, ROW_MAX);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            add_link(stems[i], stems[j], weight);
}

static void add_hint(rt_str row)
{
    rt_str from[ROW_MAX], to[ROW_MAX], left;
    rt_str_cut(&row, ':', &left);
    size_t from_count = split(left, from, ROW_MAX), to_count = split(row, to, ROW_MAX);
    for (size_t i = 0; i < from_count; i++)
        for (size_t j = 0; j < to_count; j++)
            add_link(from[i], to[j], HINT);
}

static void set_flag(const char *list, bool is_stop)
{
    rt_str rest = rt_str_of(list), word;
    while (rt_str_cut(&rest, ' ', &word)) {
        if (word.len == 0)
            continue;
        entry *e = claim(is_stop ? word : stem_of(word));
        e->is_stop |= is_stop;
        e->is_chatter |= !is_stop;
    }
}

static void read_tables(void)
{
    links = calloc(LINKS_MAX, sizeof(*links));
    if (!links)
        rt_out_of_memory(LINKS_MAX * sizeof(*links));
    for (size_t i = 0; i < RT_COUNT(tables); i++)
        for (size_t j = 0; j < tables[i].count; j++)
            add_group(rt_str_of(tables[i].rows[j]), tables[i].weight);
    for (size_t i = 0; i < RT_COUNT(hints); i++)
        add_hint(rt_str_of(hints[i]));
    set_flag(stop_words, true);
    set_flag(chatter_words, false);
}

bool search_is_stop_word(rt_str word)
{
    pthread_once(&once, read_tables);
    return slot_of(word)->is_stop;
}

float search_chatter(rt_str stem)
{
    pthread_once(&once, read_tables);
    return slot_of(stem)->is_chatter ? CHATTER : 1.0f;
}

size_t search_synonyms(rt_str stem, search_synonym out[SEARCH_SYNONYMS_MAX])
{
    size_t count = 0;
    pthread_once(&once, read_tables);
    for (uint32_t i = slot_of(stem)->first; i && count < SEARCH_SYNONYMS_MAX; i = links[i].next)
        out[count++] = (search_synonym){ links[i].stem, links[i].weight };
    return count;
}

static bool is_word(const search_token *t, rt_str word)
{
    return rt_str_eq((rt_str){ t->word, t->word_len }, word);
}

size_t search_phrases(const search_token *first, const search_token *second,
                      search_synonym out[SEARCH_SYNONYMS_MAX])
{
    size_t count = 0;
    pthread_once(&once, read_tables);
    for (size_t i = 0; i < RT_COUNT(phrases) && count == 0; i++) {
        rt_str rest = rt_str_of(phrases[i]), left, right, added;
        rt_str_cut(&rest, ' ', &left);
        rt_str_cut(&rest, '=', &right);
        if (!is_word(first, left) || !is_word(second, right))
            continue;
        while (count < SEARCH_SYNONYMS_MAX && rt_str_cut(&rest, ' ', &added))
            out[count++] = (search_synonym){ added, PHRASE };
    }
    return count;
}
