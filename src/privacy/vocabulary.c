/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocabulary.c - every word this room knows, and what each one speaks of.
 *
 * One look-up tells all: topics for context, parts of postal addresses, months, names; capitals do
 * not matter. A small bitmap of hashes answers "no" for nearly
 * every word there is.
 */
#include "privacy/privacy_internal.h"

#include <pthread.h>

enum { SLOTS = 8192, FILTER_BITS = 1 << 17, VOCABULARY_WORD_MAX = 31 };

static const struct {
    uint32_t bits;
    const char *words;
} lists[] = {
    { VOC(TOPIC_PHONE),
      "contacto contatto contato kontakt kontaktnummer phone phones telephone telephones tel tele "
      "telefon telefono teléfono téléphone tél "
      "telefone telefoon telefonnummer telefonu telefonnr telefonul telefonszám telefoni mobil "
      "mobile mobilnummer mobiltelefon movil móvil cell cellphone cellular celular cellulare "
      "call calls called calling dial dialing ring fax telefax whatsapp sms text texted texting "
      "contact contacts reach reached reachable hotline helpline handy handynummer rufnummer "
      "durchwahl portable gsm tlf tfno tlfn puhelin puhelinnumero phonenumber phonenum "
      "telephonenum telephonenumber mobilenumber msisdn voicemail landline rappeler appelez "
      "appeler appelle joindre llamar llame llámame llama ligue ligar chiama chiamare chiamami "
      "anrufen anruf erreichbar bellen bel telefonisch signal viber telegram phoneno telno "
      "mobileno mob ph contacted caller rufen telefoonnummer telefoonnummers "
      "mobiel mobielnummer gsmnummer mobilnr handynr telefonnummern telefonnumret mobilnummeret "
      "teléfonos téléphones telefones celulares móviles kontakttelefon phoned phoning telephoned "
      "dialled dialed texts callback "
      "cellphones тел телефон телефону мобильный звоните "
      "電話 电话 手机 전화 telp hp nomor pager callback" },
    { VOC(TOPIC_SSN),
      "ssn ssns soc social socialnum socialnumber socsec itin tin taxpayer securitynumber "
      "socialsecuritynumber" },
    { VOC(TOPIC_CARD),
      "card cards creditcard creditcardnumber cardnumber cardno debit credit visa mastercard "
      "amex maestro discover jcb diners unionpay pan cvv cvc cc ccn carte karte kreditkarte "
      "kreditkartennummer tarjeta carta cartao cartão kaart kreditkort kort payment pay paid "
      "charge charged billed" },
    { VOC(TOPIC_BANK),
      "iban bic swift bank banque banco banca konto kontonummer account accounts transfer wire "
      "überweisung virement rib" },
    { VOC(TOPIC_ADDRESS),
      "address addresses addr adresse adres adress adresa indirizzo direccion dirección "
      "domicilio endereço endereco morada anschrift wohnhaft live lives lived living reside "
      "resides residing residence located location mailing shipping shipped ship deliver "
      "delivered delivery billing moved streetaddress homeaddress postal habite habita wohnt "
      "wohne vive vivo abita woont home office headquarters hq visit situated property parcel "
      "lieferadresse rechnungsadresse 住所 地址 주소" },
    { VOC(TOPIC_BIRTH),
      "dob birth birthday birthdate birthdates dateofbirth born geboren geb geburtsdatum "
      "geburtstag né née naissance nacimiento nacido nacida nascita nato nata nascimento "
      "nascido nascida geboortedatum födelsedatum född fødselsdato født bday birthdays "
      "narození urodzenia urodzony syntymäaika" },
    { VOC(TOPIC_PASSPORT),
      "passport passports passeport pasaporte passaporto passaporte reisepass paspoort "
      "passnummer reisepassnummer passportnumber paszport passnum passportnum "
      "passportno" },
    { VOC(TOPIC_DRIVER),
      "driver drivers driving dl dln driverlicense driverslicense driverlicence dmv "
      "führerschein führerscheinnummer fahrerlaubnis permis conduire conducir conducción "
      "licencia patente carteira habilitação rijbewijs rijbewijsnummer körkort kørekort "
      "førerkort dvla driverlicensenum driverlicensenumber" },
    { VOC(TOPIC_LICENSE), "license licence licenses licences lic permit guida" },
    /* these say both that somebody drives and that it is a paper */
    { VOC(TOPIC_DRIVER) | VOC(TOPIC_LICENSE),
      "führerschein führerscheinnummer fahrerlaubnis conduire conducir rijbewijs rijbewijsnummer "
      "körkort kørekort førerkort driverlicense driverslicense driverlicence "
      "driverlicensenumber driverlicensenum driverlicenseno dvla habilitação" },
    { VOC(TOPIC_IP),
      "ip ipv ips ipaddress ipaddr host hosts server gateway client remote peer source "
      "destination src dst subnet login logged dns ping traceroute listening bind connect "
      "connected connection connections" },
    { VOC(TOPIC_VERSION),
      "version versions ver release released upgrade upgraded update updated downgrade firmware "
      "build builds package section chapter assembly assemblyversion fileversion oid revision "
      "rev kernel clause paragraph" },
    { VOC(TOPIC_NUMBER),
      "order orders invoice invoices ticket tickets tracking serial serialnumber sku isbn issn "
      "ean upc gtin asin id ids uid uuid guid ref reference référence referenz case cases "
      "claim po batch lot part model item items product products transaction transactions txn "
      "trace traceid span request requestid req build commit hash checksum sha md crc timestamp "
      "timestamps ts epoch error code codes errno line lines size bytes count total offset port "
      "pid tid thread job task row rows record records entry index sequence seq key imei imsi "
      "iccid vin coordinates lat lon lng latitude longitude latlng gps coord pr issue issues bug "
      "shipment waybill confirmation booking reservation bestellung bestellnummer rechnung "
      "rechnungsnummer commande facture pedido factura ordine fattura customerid "
      "kundennummer policy dossier postcode plz routing aba meter "
      "barcode fedex ups parcel article doi patent pmid arxiv memory pointer ptr register weight "
      "height distance population votes score range ratio temperature date dates time mrn "
      "acct contract contrat contrato vertrag vertragsnummer plate pin zip quantity qty "
      "beneficiary "
      "expediente docket matricule" },
    { VOC(TOPIC_FOREIGN),
      "sin nino insurance nhs nir insee cpf cnpj rg cnh bsn aadhaar aadhar uidai dni nie nif "
      "curp rfc cuil cuit rut tfn abn acn medicare personnummer fodselsnummer fødselsnummer cpr "
      "pesel nip regon ahv avs codice fiscale steuernummer steuer steueridentifikationsnummer "
      "sozialversicherungsnummer rodné oib jmbg egn cnp hetu henkilötunnus ein vat ust uid "
      "siret siren nric mykad hkid citizen resident nationalid identity idcard idnummer ausweis "
      "personalausweis personalausweisnummer kvnr krankenversicherung emirates cedula cédula "
      "taxid taxnum idcardnum nationalidnumber mbi medicaid npi dea national" },
    { VOC(TOPIC_MONEY),
      "usd eur gbp jpy cad aud chf inr cny rub brl dollars dollar euros euro pounds yen million "
      "millions billion billions thousand percent price prices cost costs amount amounts balance "
      "salary revenue budget fee kg km mb gb tb kb ms ns" },
    { VOC(TOPIC_SECRET),
      "password passwords passwd passphrase passcode pwd secret secrets token key apikey apikeys "
      "credential credentials bearer passwort kennwort contraseña clave senha schlüssel" },
    /* after the name: 12 Main Street */
    { VOC(SET_STRONG_LAST),
      "alley aly av ave avenue avenues blvd boulevard boulevards causeway cir circle close court "
      "cres crescent cswy ct dr drive drives esplanade expressway expy freeway fwy gardens "
      "highway hwy lane lanes ln mews motorway parade parkway pkwy pl place rd road roads sq "
      "square st street streets ter terrace tpke trail trl turnpike laneway roadway utca útja "
      "körút "
      "tér köz" },
    /* the same, but these mean much else too: 12 Smith Fork */
    { VOC(SET_WEAK_LAST),
      "annex arcade bayou beach bend bluff bluffs bottom branch bridge broadway brook brooks "
      "burg burgs bypass byway camp canyon cape center centers circles cliff cliffs club common "
      "commons concourse corner corners cottages course courts cove coves creek crest croft "
      "crossing crossroad curve dale dam divide drove end estate estates extension extensions "
      "fall falls ferry field fields flat flats ford fords forest forge forges fork forks fort "
      "garden gate gateway glen glens green greens grove groves grv harbor harbors haven heights "
      "hill hills hollow hts inlet island islands isle jct junction junctions key keys knoll "
      "knolls lake lakes landing lea light lights locks lodge loop manor meadow meadows mill "
      "mills mission motorway mount mountain mountains neck orchard oval overpass park parks "
      "pass passage path pike pine pines plain plains plaza plz point port ports prairie "
      "promenade pt quay radial ramp ranch rapid rapids rdg rest ridge rise river route row rue "
      "run shoal shoals shore shores skyway spring springs spur spurs squares station stravenue "
      "stream summit throughway trace track trafficway tunnel underpass union unions vale valley "
      "valleys via viaduct view views village villages ville vista walk walks wall way ways well "
      "wells wharf yard access alleyway approach brae chase circlet circuit circus colonnade copse "
      "courtyard cul-de-sac cutting dell driveway elbow fairway foreshore formation frontage glade "
      "grange highroad interchange link lookout mall meander nook outlook parklands plateau quad "
      "quadrangle quadrant ramble reserve retreat ridgeway ring riverway riviera roadside ronde "
      "rotary stairs steps strand thoroughfare tollway towers triangle trunkway villas walkway "
      "crossway cross ridges wynd nagar marg ganj chowk colony zila vihar puram layout enclave "
      "bagh salai" },
    /* before the name: 12 rue Monge, Calle Mayor 12 */
    { VOC(SET_STRONG_FIRST),
      "av avd alameda aleja allee allée allées avda avenida avenue bd boulevard bulevar bulevardul "
      "c/ "
      "calle camino carrer carretera chemin contrada corso esplanade estrada impasse jalan jl "
      "lungomare náměstí paseo piazza piazzale plac plaza praça quai rambla rodovia "
      "rond-point ronda rua rue ruelle salita sentier strada travessa třída ul ulica ulice "
      "viale vicolo voie бульвар переулок пр проспект ул улица "
      "шоссе ш наб алл бул пер просп callejón callejon privada prolongación prolongacion retorno "
      "cerrada calzada andador intrarea soseaua șoseaua aleea splaiul montée ladeira viela "
      "rodovia allé drumul str ctra urb estr trav" },
    /* the same, but these mean much else too: Via Roma 12 */
    { VOC(SET_WEAK_FIRST),
      "al bairro barrio carrera cite cité colonia cours cra côte diagonal faubourg glorieta "
      "hameau kr largo lieu-dit lot lote montée os os. pasaje passage pl place quinta route "
      "résidence sector square transversal urbanización via villa vía rang borgo canale incrocio "
      "rotonda stretto viaducto circuito continuación corredor periférico eje acceso cuesta vial "
      "feira lagoa campo área setor morro condomínio vale trecho loteamento conjunto residencial "
      "distrito favela fazenda jardim núcleo parque passarela pátio recanto sítio vereda vila "
      "esplanada estação colônia chácara" },
    /* a part of a building */
    { VOC(SET_UNIT),
      "andar ap apartment appartement appt apt apto bat bldg block bloco box building byt "
      "bâtiment dept depto dpto esc etage fl flat floor hus int interno kat level lgh lot m/s "
      "no of oficina piso puerta rm room sala scala ste stiege stock studio suite top tower trlr "
      "unit wohnung étage appartamento piano edif edificio interior lt mz manzana bl sc et стр "
      "корп "
      "кв оф к" },
    /* the last word of a country's name */
    { VOC(SET_COUNTRY),
      "africa america argentina australia austria belgique belgium belgië brasil brazil "
      "bulgaria canada chile china colombia croatia czechia danmark denmark deutschland egypt "
      "emirates england españa estonia finland france germany greece hungary india indonesia "
      "ireland israel italia italy japan kenya kingdom korea latvia lithuania luxembourg "
      "malaysia mexico méxico nederland netherlands nigeria norge norway peru philippines "
      "poland polska portugal romania russia schweiz scotland singapore slovakia slovenia spain "
      "suisse suomi sverige svizzera sweden switzerland thailand turkey türkiye u.s.a. uae uk "
      "ukraine us usa vietnam wales zealand österreich" },
    /* small words inside names */
    { VOC(SET_SMALL),
      "af am an auf bei d' da das de degli dei del della den der des di do dos du e el et het im "
      "in l' la las le les los of on sous sur the und unter upon van y zum zur" },
    /* states, provinces and territories */
    { VOC(SET_STATE),
      "aa ab act ae ak al ap ar as az bc ca co ct dc de fl fm ga gu hi ia id il in ks ky la ma "
      "mb md me mh mi mn mo mp ms mt nb nc nd ne nh nj nl nm ns nsw nt nu nv ny oh ok on or pa "
      "pe pr pw qc qld ri sc sd sk tas tn tx ut va vi vic vt wa wi wv wy yt sa ac am ba ce df es "
      "go mg pb pi rj rn rs ro rr sp se to" },
    /* before a number: it is no house's */
    { VOC(SET_BAN),
      "about act almost approximately apr april article aug august chapter class code day dec "
      "december episode error exercise feb february fig figure grade group http item jan january "
      "java jul july jun june lesson level line mar march month nearly nov november oct october "
      "over page part phase port psalm python question room rule scene season section sep sept "
      "september step table than top under unit version week windows year" },
    /* between number and street word: no street's name */
    { VOC(SET_THING),
      "a an and are as at be by day days feet files for from gb her his hour hours if in is it "
      "items kb km lines mb men meters metres mile miles minute minutes month months my no not "
      "of on or our people per percent points rows tb that the their this times to users was "
      "week weeks were which with women year years your" },
    /* before "drive", "court", "way": something else than a street */
    { VOC(SET_GADGET),
      "any backup basketball best c d disk each either external fast flash food google hard "
      "network one only other right same shared solid state supreme tape tennis test thumb usb "
      "wrong" },
    /* months */
    { VOC(SET_MONTH),
      "january february march april may june july august september october november december jan "
      "feb mar apr jun jul aug sep sept oct nov dec januar februar märz mai juni juli oktober "
      "dezember janvier février mars avril juin juillet août septembre octobre novembre "
      "décembre enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
      "diciembre gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre janeiro "
      "fevereiro março maio junho julho setembro outubro dezembro januari februari maart mei "
      "augustus maj okt dez" },
    /* the last word of a post office box */
    { VOC(SET_BOX),
      "box pobox postfach postbus apartado postale apdo number boks postboks psc bag cp bp" },
    /* what a field with an address is called */
    { VOC(SET_ADDRESS_NAME),
      "address addr adresse anschrift dirección direccion indirizzo endereço adres street "
      "streetaddress homeaddress 住所 地址" },
    /* common first names */
    { VOC(SET_FIRST_NAME),
      "aaron abigail adam ahmed aisha akira alan albert alejandro alessandro alex alexander "
      "alexis ali alice amanda amber amit amy ana anders andrea andreas andrew angela anja "
      "anjali ann anna anthony antoine antonio arjun arthur ashley austin barbara beatriz ben "
      "benjamin beth betty beverly bill billy birgit björn bob bobby brandon brenda brian "
      "brittany bruce bryan camille carl carlos carmen carol carolyn catherine charles charlotte "
      "chen cheryl chiara chloé chris christian christina christine christopher claire claudia "
      "cynthia dan daniel danielle dave david deborah debra denise dennis diana diane dmitri "
      "donald donna doris dorothy douglas dylan ed edward elijah elizabeth emily emma eric erik "
      "ethan eugene evelyn fatima fernando frances francesca frank françois gabriel gary george "
      "gerald giovanni giulia giuseppe gloria greg gregory günter hannah hans harold hassan "
      "heather heinz helen henry hiroshi ibrahim ingrid isabel isabella isabelle ivan jack jacob "
      "jacqueline jacques james jan jane janet janice jason javier jean jeffrey jennifer jeremy "
      "jerry jesse jessica jim joan joe johan john johnny jonathan jordan jorge jose joseph "
      "joshua joyce joão juan judith judy julia julie julien justin jürgen karen karin "
      "katarzyna kate katherine kathleen kathryn kayla keith kelly kenji kenneth kevin kimberly "
      "klaus krzysztof kyle larry lars laura lauren lawrence li linda lisa liz logan lorenzo "
      "lori louis luc luca lucía luis léa madison manuel marco margaret maria mariana marie "
      "marilyn mark martha mary mathieu matt matteo matthew megan melissa michael michelle "
      "miguel mike ming mohamed monika nancy natalie natasha nathan neha nicholas nick nicolas "
      "nicole noah olga olivia omar pablo pamela paolo patricia patrick paul pedro peter petra "
      "philip philippe pierre piotr priya rachel rafael rahul raj ralph randy raymond rebecca "
      "richard rob robert roger ronald roy russell ruth ryan sabine sakura sam samantha samuel "
      "sandra sanjay sara sarah scott sean sergei sharon shirley sofía sophia sophie stefan "
      "stephanie stephen steve steven susan sven tatiana teresa terry theresa thomas tiago "
      "timothy tom tomasz tony tyler ursula uwe victoria vincent virginia vladimir walter wayne "
      "wei william willie wolfgang yuki zachary" },
    /* before a surname */
    { VOC(SET_TITLE),
      "dr frau herr madame miss monsieur mr mrs ms prof professor señor señora signor signora "
      "sir" },
};

/* The word itself is not kept: of all words there are, one in a million would be taken for another,
 * and what it would change is a score. */
typedef struct slot {
    uint32_t hash, bits; /* no bits: empty */
} slot;

static slot slots[SLOTS];
static uint64_t filter[FILTER_BITS / 64];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/*
 * Bit 5 is all that tells capitals from small letters, in ASCII and in the second byte of Latin-1's
 * (C3 80 is À, C3 A0 is à); setting it everywhere folds both, and digits and dashes stay
 * themselves.
 */
#define FOLD 0x2020202020202020

static uint64_t load(const char *from, size_t n)
{
    uint64_t value = 0;
    memcpy(&value, from, n);
    return value;
}

/* Two loads that may overlap cover a word of up to 16 bytes; longer ones add their middle. */
static uint32_t hash_of(rt_str word)
{
    uint64_t a, b, c = 0;
    const char *p = word.ptr;
    size_t n = word.len;
    if (n >= 8) {
        a = load(p, 8);
        b = load(p + n - 8, 8);
        c = n > 16 ? load(p + 8, 8) : 0;
    } else if (n >= 4) {
        a = load(p, 4);
        b = load(p + n - 4, 4);
    } else {
        a = (unsigned char)p[0];
        b = (uint64_t)(unsigned char)p[n / 2] << 8 | (unsigned char)p[n - 1];
    }
    uint64_t hash = ((a | FOLD) ^ (c | FOLD) * 3) * UINT64_C(0x9E3779B97F4A7C15);
    hash = (hash ^ hash >> 29 ^ (b | FOLD) ^ n) * UINT64_C(0xBF58476D1CE4E5B9);
    return (uint32_t)(hash >> 32);
}

static void learn(rt_str word, uint32_t bits)
{
    uint32_t hash = hash_of(word);
    size_t i = hash % SLOTS;
    while (slots[i].bits && slots[i].hash != hash)
        i = (i + 1) % SLOTS;
    slots[i] = (slot){ hash, slots[i].bits | bits };
    filter[hash % FILTER_BITS / 64] |= UINT64_C(1) << (hash % 64);
}

/* The scan stops at these words, written in any of the usual ways: born, Born, BORN. */
static void mark_word(rt_str word)
{
    static const unsigned char capitals[] = { 0, 1, 3 };
    static const char after_two[] = " #:._\"";
    for (size_t k = 0; k < RT_COUNT(capitals); k++) {
        char three[3] = { 0 };
        for (size_t i = 0; i < 3 && i < word.len; i++) {
            bool is_capital = i < capitals[k] && is_class(word.ptr[i], IS_LOWER);
            three[i] = is_capital ? (char)(word.ptr[i] - 32) : word.ptr[i];
        }
        for (const char *c = after_two; word.len == 2 && *c; c++) {
            three[2] = *c;
            privacy_mark(three);
        }
        privacy_mark(three);
    }
}

static void learn_all(void)
{
    for (size_t k = 0; k < RT_COUNT(lists); k++) {
        rt_str rest = rt_str_of(lists[k].words), word;
        while (rt_str_cut(&rest, ' ', &word)) {
            if (word.len == 0)
                continue;
            learn(word, lists[k].bits);
            if (lists[k].bits & (PRIVACY_RARE | VOC(TOPIC_SECRET)))
                mark_word(word);
        }
    }
}

void privacy_vocabulary_learn(void)
{
    pthread_once(&once, learn_all);
}

uint32_t privacy_vocabulary(rt_str word)
{
    if (word.len == 0 || word.len > VOCABULARY_WORD_MAX)
        return 0;
    uint32_t hash = hash_of(word);
    if (!(filter[hash % FILTER_BITS / 64] >> (hash % 64) & 1))
        return 0;
    size_t i = hash % SLOTS;
    while (slots[i].bits && slots[i].hash != hash)
        i = (i + 1) % SLOTS;
    return slots[i].bits;
}
