"""Words that tell what stands beside them: months, titles, relatives, states, given names, and what is no name."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sept sep",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}

TITLES = words(
    """mr mrs ms miss mx dr dr. drs doctor prof professor nurse rev reverend sgt capt judge attorney pastor
    rabbi officer madam sir"""
)
DOCTORS = words("dr drs doctor prof professor nurse")

CREDENTIALS = words(
    """md m.d do d.o rn r.n np pa pa-c phd ph.d dds dmd lpn crna mbbs facs facp msw lcsw dpm fnp aprn pharmd
    psyd cnm bsn msn mph frcp mrcp frcs dc cma emt dnp fnp-c aprn-c"""
)
NAME_TAILS = words("jr sr ii iii iv jr. sr. esq")
PARTICLES = words("de la van von der den del di da al bin ibn el le du st st. ter ten dos das")

RELATIVES = {
    **dict.fromkeys(
        words(
            """daughter wife mother mom sister aunt niece grandmother granddaughter girlfriend stepmother stepdaughter
    fiancee mother-in-law daughter-in-law sister-in-law grandma"""
        ),
        "female",
    ),
    **dict.fromkeys(
        words(
            """son husband father dad brother uncle nephew grandfather grandson boyfriend stepfather stepson fiance
    father-in-law son-in-law brother-in-law grandpa"""
        ),
        "male",
    ),
    **dict.fromkeys(
        words(
            """spouse partner parent parents sibling child cousin friend neighbor neighbour caregiver guardian roommate
    relative"""
        ),
        "",
    ),
}
"""Each relative with the sex that the word implies."""

RELATIVE = "|".join(sorted(RELATIVES, key=lambda word: (-len(word), word)))
"""Every relative as alternatives of a pattern, the longest first."""

SEXES = {
    **dict.fromkeys(["male", "man", "boy", "gentleman", "males", "gentlemen"], "male"),
    **dict.fromkeys(["female", "woman", "girl", "lady", "females"], "female"),
}

STATES = {
    "alabama": "AL", "alaska": "AK", "arizona": "AZ", "arkansas": "AR", "california": "CA", "colorado": "CO",
    "connecticut": "CT", "delaware": "DE", "florida": "FL", "georgia": "GA", "hawaii": "HI", "idaho": "ID",
    "illinois": "IL", "indiana": "IN", "iowa": "IA", "kansas": "KS", "kentucky": "KY", "louisiana": "LA",
    "maine": "ME", "maryland": "MD", "massachusetts": "MA", "michigan": "MI", "minnesota": "MN",
    "mississippi": "MS", "missouri": "MO", "montana": "MT", "nebraska": "NE", "nevada": "NV",
    "new hampshire": "NH", "new jersey": "NJ", "new mexico": "NM", "new york": "NY", "north carolina": "NC",
    "north dakota": "ND", "ohio": "OH", "oklahoma": "OK", "oregon": "OR", "pennsylvania": "PA",
    "rhode island": "RI", "south carolina": "SC", "south dakota": "SD", "tennessee": "TN", "texas": "TX",
    "utah": "UT", "vermont": "VT", "virginia": "VA", "washington": "WA", "west virginia": "WV",
    "wisconsin": "WI", "wyoming": "WY", "district of columbia": "DC", "puerto rico": "PR",
}  # fmt: skip
ABBREVIATIONS = frozenset(STATES.values())

CITIES = frozenset(
    city.strip()
    for city in """new york,new york city,los angeles,chicago,houston,phoenix,philadelphia,san antonio,san diego,
    dallas,san jose,austin,jacksonville,fort worth,columbus,charlotte,san francisco,indianapolis,seattle,denver,
    boston,el paso,detroit,nashville,portland,memphis,oklahoma city,las vegas,louisville,baltimore,milwaukee,
    albuquerque,tucson,fresno,sacramento,kansas city,mesa,atlanta,omaha,colorado springs,raleigh,miami,long beach,
    virginia beach,oakland,minneapolis,tulsa,tampa,arlington,new orleans,wichita,cleveland,bakersfield,aurora,
    anaheim,honolulu,santa ana,riverside,corpus christi,lexington,stockton,henderson,saint paul,st. paul,st. louis,
    saint louis,cincinnati,pittsburgh,greensboro,anchorage,plano,lincoln,orlando,irvine,newark,toledo,durham,
    chula vista,fort wayne,jersey city,st. petersburg,laredo,madison,chandler,buffalo,lubbock,scottsdale,reno,
    glendale,gilbert,winston-salem,north las vegas,norfolk,chesapeake,garland,irving,hialeah,fremont,boise,
    richmond,baton rouge,spokane,des moines,tacoma,san bernardino,modesto,fontana,santa clarita,birmingham,oxnard,
    fayetteville,rochester,moreno valley,yonkers,huntington beach,akron,salt lake city,little rock,augusta,
    amarillo,mobile,grand rapids,tallahassee,huntsville,worcester,knoxville,providence,brownsville,santa rosa,
    overland park,chattanooga,fort lauderdale,springfield,salem,eugene,cambridge,lowell,hartford,bridgeport,
    new haven,syracuse,albany,trenton,camden,wilmington,dover,annapolis,charleston,columbia,savannah,macon,
    montgomery,jackson,biloxi,shreveport,lafayette,topeka,sioux falls,fargo,bismarck,billings,helena,cheyenne,
    santa fe,flagstaff,evanston,joliet,peoria,naperville,ann arbor,lansing,flint,dayton,youngstown,erie,allentown,
    scranton,harrisburg,bethesda,rockville,alexandria,brooklyn,queens,manhattan,bronx,staten island,pasadena,
    berkeley,palo alto,santa monica,burlington,montpelier,concord,manchester,bangor,duluth,green bay,kenosha,
    cedar rapids,iowa city,davenport,lawrence,boulder,fort collins,provo,ogden,tempe,london,toronto,paris,
    mexico city,vancouver,montreal,berlin,sydney,melbourne,dublin,edinburgh,glasgow""".replace(
        "\n", ""
    ).split(",")
)
"""Cities of the United States with many people, and some beyond; the dictionary's gazetteer has more."""

COUNTRIES = frozenset(
    [
        "united states",
        "united kingdom",
        "canada",
        "mexico",
        "england",
        "scotland",
        "ireland",
        "france",
        "germany",
        "italy",
        "spain",
        "portugal",
        "poland",
        "russia",
        "ukraine",
        "china",
        "japan",
        "india",
        "pakistan",
        "bangladesh",
        "vietnam",
        "philippines",
        "korea",
        "south korea",
        "thailand",
        "brazil",
        "argentina",
        "chile",
        "colombia",
        "peru",
        "ecuador",
        "venezuela",
        "cuba",
        "haiti",
        "jamaica",
        "dominican republic",
        "guatemala",
        "el salvador",
        "honduras",
        "nicaragua",
        "nigeria",
        "ghana",
        "kenya",
        "ethiopia",
        "egypt",
        "morocco",
        "somalia",
        "iran",
        "iraq",
        "afghanistan",
        "syria",
        "lebanon",
        "israel",
        "greece",
        "australia",
        "new zealand",
    ]
)

FEMALE = words(
    """abigail adriana agnes aisha alexandra alexis alice alicia alison allison alyssa amanda amber amelia amy
    ana andrea angela angelica anita ann anna anne annette annie april arlene ashley audrey barbara
    beatrice becky belinda beth bethany betty beverly bonnie brandi brandy brenda brittany brooke
    caitlin camille candace cara carla carmen carol carole caroline carolyn carrie cassandra catherine
    cathy cecilia charlene charlotte chelsea cheryl chloe christie christina christine cindy claire
    clara claudia colleen connie courtney crystal cynthia daisy dana danielle darlene dawn deanna debbie
    deborah debra denise diana diane dolores donna dora doreen doris dorothy edith edna eileen elaine
    eleanor elena elise eliza elizabeth ella ellen elsie emily emma erica erika erin esther ethel eva
    evelyn faith fatima felicia fiona florence frances gabriela gabrielle gail geraldine gertrude gina
    ginger gladys glenda gloria grace greta gwendolyn hannah harriet hazel heather heidi helen helena
    hilda holly ida ingrid irene iris irma isabel isabella ivy jackie jacqueline jane janet janice
    jasmine jean jeanette jeanne jenna jennifer jenny jessica jill jo joan joann joanna joanne jocelyn
    josephine joy joyce juanita judith judy julia juliana julie june kaitlyn kara karen kari karla kate
    katelyn katherine kathleen kathryn kathy katie katrina kayla keisha kelly kelsey kendra kim kimberly
    krista kristen kristi kristin kristina kristine kristy lakisha latasha latoya laura lauren laurie
    leah lena leslie leticia lillian lillie lily linda lindsay lindsey lisa lois loretta lori lorraine
    louise lucia lucille lucy luz lydia lynn mabel mackenzie madeline madison maggie mandy marcia
    margaret margarita maria mariah marian marie marilyn marion marissa marjorie marlene marsha martha
    mary maureen maxine may megan meghan melanie melinda melissa mercedes meredith mia michele michelle
    mildred mindy miranda miriam molly monica monique myra nadia nancy naomi natalie natasha nicole nina
    nora norma olga olive olivia paige pamela patricia patty paula pauline pearl peggy penny phyllis
    priya priscilla rachel ramona rebecca regina renee rhonda rita roberta robin robyn rosa rosalie rose
    rosemary roxanne ruby ruth sabrina sally samantha sandra sara sarah savannah selena shannon sharon
    shawna sheila shelby shelly sherri sherry sheryl shirley silvia sofia sonia sonya sophia sophie
    stacey stacy stefanie stella stephanie sue susan susanna suzanne sylvia tabitha tamara tammy tanya
    tara teresa terri thelma theresa tiffany tina toni tonya tracey traci tracy valerie vanessa vera
    veronica vicki vickie victoria viola violet virginia vivian wanda wendy whitney wilma yasmin yolanda
    yvette yvonne zoe"""
)
MALE = words(
    """aaron abdul abraham adam adrian ahmed alan albert alejandro alex alexander alfred ali allen alvin andre
    andres andrew andy anthony antonio arnold arthur barry benjamin bernard bill billy blake bob bobby
    brad bradley brandon brent brett brian bruce bryan byron calvin cameron carl carlos cesar chad
    charles charlie chase chester chris christian christopher clarence clark claude clayton clifford
    clinton clyde cody colin connor corey cory craig curtis dale dan daniel danny darrell darren darryl
    dave david dean dennis derek derrick diego dominic don donald douglas duane dustin dwayne dwight
    dylan earl eddie edgar eduardo edward edwin elijah elliot elmer emmanuel enrique eric erik ernest
    ethan eugene evan felix fernando floyd francis francisco frank franklin fred frederick gabriel
    garrett gary gavin gene george gerald gerardo gilbert glen glenn gordon graham greg gregory guy
    harold harry harvey hector henry herbert herman horace howard hugh hunter ian ibrahim ignacio isaac
    isaiah ivan jack jackson jacob jaime jake james jamie jared jason javier jay jeff jeffery jeffrey
    jeremiah jeremy jerome jerry jesse jesus jim jimmy joe joel joey john johnny jon jonathan jordan
    jorge jose joseph joshua juan julian julio justin karl keith kenneth kenny kent kevin kirk kurt kyle
    lance larry lawrence lee leo leon leonard leroy lester levi lewis liam lloyd logan lonnie louis
    lucas luis luke malcolm manuel marc marco marcus mario mark marshall martin marvin mason mateo
    mathew matthew maurice max maxwell melvin michael micheal miguel mike mitchell mohamed mohammed
    morris nathan nathaniel neil nelson nicholas nick noah noel norman oliver omar orlando oscar owen
    pablo parker patrick paul pedro perry peter philip phillip pierre preston rafael ralph ramon randall
    randy raul ray raymond reginald rene ricardo richard rick ricky robert roberto rodney roger roland
    ronald ronnie ross roy ruben russell ryan salvador sam samuel scott sean sebastian sergio seth shane
    shaun shawn sidney simon spencer stanley stephen steve steven stewart stuart ted terrance terry
    theodore thomas tim timothy todd tom tommy tony travis trevor troy tyler tyrone vernon victor
    vincent wade wallace walter warren wayne wesley william willie winston wyatt xavier zachary"""
)
GIVEN = FEMALE | MALE
"""Given names that are common in the United States (public knowledge of its censuses)."""

# Given names that are words as well: alone, at the beginning of a sentence, they are no evidence.
WORDS_TOO = words(
    """april may june grace joy hope faith rose iris ivy hazel pearl ruby violet daisy olive dawn penny sandy
    summer autumn mark frank grant drew will pat bill rob sue gene jack guy chase hunter mason parker
    sterling art dale dean glen jordan madison savannah virginia georgia charlotte paris orlando jackson
    austin dallas houston carol robin ray rich max christian lance miles wade marsha kent brook brooke
    holly ginger ross perry angel jean amber crystal christie patty destiny"""
)

NO_NAME = words(
    """staff native american african hispanic latino latina asian caucasian indian pacific islander alaska
    scale index score form team therapy radiology rehab dietary speech occupational vital signs what
    which how why could should would do does did can may must might please ensure consider given
    recommended treatment guidelines management options stage grade type vitamin hepatitis influenza
    covid covid-19 hiv aids copd chf cad ckd dm htn uti gerd afib mrsa std dvt pe tb als ms adhd ptsd a
    about abdomen abdominal about acute admission admit admitted after age ago alert all allergies
    allergy also am an and ankle any appearance are arm as assess assessment at attending back be
    because been before below bilateral biopsy birth black blood bp brain breast but by call came
    cardiac cardiology cardiovascular care case cc chart check chest chief chronic clinic clinical
    comments complains complaint complete condition consult consultation continue county course ct
    current daily date day days denies department dermatology diabetes diagnosis diagnoses diet
    discharge discharged disease discussed disposition dob doctor dr dose drug due during ear ears
    emergency endocrine ent er evaluation exam examination extremities eye eyes family father female
    fever final findings first follow followed followup for found friday from gastrointestinal general
    genitourinary gi given gross gu gyn had has have he head headache heart heent her here hip his
    history home hospital house hpi hr hypertension i icu id if illness imaging impression in
    information initial injury instructions intake is it januvia kidney knee lab labs laboratory left
    leg liver location low lung lungs male man medical medication medications medicine microscopic
    middle monday mother mouth mri ms mr mrs musculoskeletal my name neck negative neurologic
    neurological neurology new next night no none normal nose note notes now nurse nursing obese ob
    objective of old on oncology one open operation operative or oral order orthopedic other our
    outpatient oxygen pain past path pathology patient patients pediatric pelvic per phone physical
    physician plan please pm position positive postoperative prior problem problems procedure procedures
    progress prostate provider psychiatric psychiatry pt pulmonary pulse r radiology reason recent
    recommend recommendations record referral referred regarding rehabilitation renal report respiratory
    result results return review right room saturday seen service service services she shoulder since
    skin social specimen spine status stomach subjective summary sunday surgeon surgery surgical
    symptoms systems tablet take temp temperature test tests that the then there these they this throat
    thursday thyroid time to today tuesday two type ultrasound under unit unknown up upon urgent urine
    us use vital vitals visit vs was we wednesday week weeks well were when while white who will with
    woman work x-ray year years yesterday yes you your january february march april june july august
    september october november december jan feb mar apr jun jul aug sep sept oct nov dec"""
)
"""Words of notes that begin with a capital in headings and sentences and are no part of a name."""

SURNAMES_TOO = words("white black day may low case work march head hand foot close moody english")
"""Of these, last names of people: they go on a name that has begun."""

PLAIN = words(
    """the and of in on at by for with is was has had he she it his her this that these those there then when
    while who will from to or not no if as a an be been are were patient patients please per plan"""
)
"""Words that are no name even after a title."""
