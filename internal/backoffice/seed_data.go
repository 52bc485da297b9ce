package backoffice

// The people and things of the demo, all made up. The ones in front play a
// part in a scenario; those behind are drawn from the lists below.

// slowBank answers refunds later than a tool may take.
const slowBank = "Tideway Bank"

// hostileName is what a stranger may put into a form: markup, a direction
// override that turns the following letters round, a zero-width space.
const hostileName = "Rob <img src=x onerror=alert(1)> \u202eegnahc\u202c\u200b </script><b>Vale"

var leadCustomers = []customer{
	{ID: "C-1001", Name: "Mira Solheim", Mail: "mira.solheim@example.com", Street: "Havnegata 12", Postcode: "7010", City: "Trondheim", Country: "Norway", bank: "Harbour Bank", card: "4242"},
	{ID: "C-1002", Name: "Jonas Weber", Mail: "jonas.weber@example.com", Street: "Mühlenweg 9", Postcode: "48143", City: "Münster", Country: "Germany", bank: "Harbour Bank", card: "0017"},
	{ID: "C-1003", Name: "Amara Okafor", Mail: "amara.okafor@example.com", Street: "18 Orchard Rise", Postcode: "LS6 2AB", City: "Leeds", Country: "United Kingdom", bank: "Northgate Credit", card: "4417"},
	{ID: "C-1004", Name: "Lena Brandt", Mail: "lena.brandt@example.com", Street: "Uferstraße 3", Postcode: "28195", City: "Bremen", Country: "Germany", bank: "Harbour Bank", card: "8801"},
	{ID: "C-1005", Name: "Paul Verhoeven-Smit", Mail: "paul.vs@example.com", Street: "Kanaalkade 41", Postcode: "1811 LP", City: "Alkmaar", Country: "Netherlands", bank: "Northgate Credit", card: "2260"},
	{ID: "C-1006", Name: "Ines Carvalho", Mail: "ines.carvalho@example.com", Street: "Rua do Moinho 77", Postcode: "4050-123", City: "Porto", Country: "Portugal", bank: "Harbour Bank", card: "9034"},
	{ID: "C-1007", Name: "山田 花子", Mail: "hanako.yamada@example.com", Street: "さくら通り 3-5-1", Postcode: "600-8216", City: "京都市", Country: "日本", bank: "Northgate Credit", card: "5578"},
	{ID: "C-1008", Name: hostileName, Mail: "rob.vale@example.com", Street: "1 Null Lane\u200f", Postcode: "00000", City: "Örebro", Country: "Sweden", bank: "Harbour Bank", card: "6666"},
	{ID: "C-1009", Name: "Tomasz Wójcik", Mail: "tomasz.wojcik@example.com", Street: "ul. Brzozowa 8", Postcode: "61-001", City: "Poznań", Country: "Poland", bank: slowBank, card: "7123"},
}

// seedOrder is an order as it is filled in.
type seedOrder struct {
	id, customer, status, currency, placed, note string
	items                                        []item
}

var leadOrders = []seedOrder{
	{"A-1031", "C-1004", "shipped", "EUR", "2026-05-20", "On the van of Friday, 22 May.", []item{{Name: "Storm lantern", Quantity: 1, UnitCents: 2400}}},
	{"A-1032", "C-1005", "shipped", "EUR", "2026-05-21", "On the van of Friday, 22 May.", []item{{Name: "Storm lantern", Quantity: 2, UnitCents: 2400}}},
	{"A-1033", "C-1006", "shipped", "EUR", "2026-05-21", "On the van of Friday, 22 May.", []item{{Name: "Storm lantern", Quantity: 1, UnitCents: 2400}}},
	{"A-1042", "C-1001", "delivered", "EUR", "2026-05-31", "", []item{{Name: "Copper kettle, 1.2 l", Quantity: 1, UnitCents: 3490}, {Name: "Smoked tea, 100 g", Quantity: 1, UnitCents: 750}}},
	{"A-1019", "C-1001", "delivered", "EUR", "2026-05-08", "", []item{{Name: "Linen apron", Quantity: 2, UnitCents: 2150}}},
	{"A-1050", "C-1002", "open", "EUR", "2026-06-08", "", []item{{Name: "Bread knife", Quantity: 1, UnitCents: 4200}}},
	{"A-1057", "C-1003", "open", "GBP", "2026-06-15", "", []item{{Name: "Oak shelf, 80 cm", Quantity: 2, UnitCents: 5900}, {Name: "Wall bracket", Quantity: 4, UnitCents: 425}}},
	{"A-1064", "C-1007", "delivered", "EUR", "2026-06-22", "のし付き・置き配不可。Ελληνικά: εύθραυστο. عربي: قابل للكسر.", []item{{Name: "抹茶茶碗 «Ночь» (matcha bowl)", Quantity: 1, UnitCents: 6800}, {Name: "茶筅", Quantity: 1, UnitCents: 1900}}},
	{"A-1071", "C-1008", "delivered", "EUR", "2026-06-29", "Gift note: <script>document.title='mine'</script>", []item{{Name: "Door bell", Quantity: 1, UnitCents: 1995}}},
	{"A-1088", "C-1009", "delivered", "PLN", "2026-07-16", "", []item{{Name: "Hand coffee grinder", Quantity: 1, UnitCents: 15900}}},
}

// leadRefunds were booked before the demo begins.
var leadRefunds = []struct {
	order  string
	cents  int64
	reason string
}{
	{"A-1019", 2150, "one of two aprons had a torn seam"},
	{"A-1064", 1900, "whisk was missing in the parcel"},
}

var (
	firstNames = []string{"Ada", "Bruno", "Chiara", "Dario", "Elif", "Femke", "Goran", "Hedda", "Ivo", "Jana", "Kofi", "Linnea", "Marek", "Noor", "Otis", "Petra",
		"Quim", "Rosa", "Sami", "Tuva", "Ulrich", "Vera", "Wanda", "Ximena", "Yusuf", "Zoé", "Björn", "Çelik", "Dvořák", "Éloïse", "Fionn"}
	lastNames = []string{"Abel", "Boczek", "Calloway", "Dahl", "Eriksson", "Fontaine", "Grünwald", "Haddad", "Iversen", "Jurić", "Kowal", "Lindqvist", "Moreau", "Nyberg", "Osei",
		"Pinto", "Quist", "Rossini", "Stavros", "Tahiri", "Ulloa", "Varga", "Winther", "Xhaka", "Yilmaz", "Zeman", "Åkesson", "Bélanger", "Costa", "Døssing", "Engel"}
	streets = []string{"Bahnhofstraße", "Rue des Lilas", "Mill Lane", "Via Garibaldi", "Storgatan", "Calle Mayor", "Prinsengracht", "Na Příkopě", "Hügelweg", "Quai Nord"}
	places  = []struct{ postcode, city, country, currency string }{
		{"20095", "Hamburg", "Germany", "EUR"}, {"69002", "Lyon", "France", "EUR"}, {"BS1 4DJ", "Bristol", "United Kingdom", "GBP"},
		{"40121", "Bologna", "Italy", "EUR"}, {"8001", "Zürich", "Switzerland", "CHF"}, {"30-001", "Kraków", "Poland", "PLN"},
		{"28004", "Madrid", "Spain", "EUR"}, {"04101", "Portland", "United States", "USD"},
	}
	goods = []item{
		{Name: "Enamel mug", UnitCents: 1250}, {Name: "Wool blanket", UnitCents: 7900}, {Name: "Cast-iron pan, 26 cm", UnitCents: 5490}, {Name: "Tea towel", UnitCents: 890},
		{Name: "Beeswax candle", UnitCents: 1490}, {Name: "Garden shears", UnitCents: 3275}, {Name: "Folding stool", UnitCents: 4600}, {Name: "Bread box", UnitCents: 5200},
		{Name: "Salt mill", UnitCents: 2995}, {Name: "Brass hook", UnitCents: 640}, {Name: "Wash basket", UnitCents: 3900}, {Name: "Desk lamp", UnitCents: 4990},
	}
)

// policyTexts are the shop's rules, as refund_policy gives them.
var policyTexts = []policyText{
	{"damaged", "Damaged goods", "Goods that arrive broken are refunded in full: the item, and the postage where nothing else was in the parcel. A photo is asked for above 100.00. The customer keeps the item."},
	{"lost", "Lost parcels", "A parcel that the carrier has declared lost is refunded in full at once. The claim against the carrier is the shop's affair."},
	{"late", "Late delivery", "From the fifth working day on, a tenth of the order's value is paid back. Nothing is paid back for orders that the customer delayed."},
	{"change_of_mind", "Change of mind", "Unused goods go back within 30 days and are then refunded without postage. Food, candles and made-to-measure goods are not taken back."},
	{"goodwill", "Goodwill", "Where nothing is owed, half of the item's price or a voucher of 15.00 may be offered. A voucher is good for two years."},
}
